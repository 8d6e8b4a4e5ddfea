// What a transport gives between processes of this host, beside memcpy in the same run.
//   gxp_transport_bench [--ranks N] [--transport NAME] [--rounds N] [--streams N] [--buffer BYTES]
//                       [--protect none|authenticate|encrypt]
// half_rtt  half of a round trip between ranks 0 and 1 (with more ranks, the others wait)
// exchange  a ring step: every rank sends to the next rank and adds to its floats what comes from
//           the previous one, all at once. An all-reduce of n bytes over N ranks takes at least
//           2 (N - 1) of these with n / N bytes; half of them store where these add.
// Times are medians over the rounds, as rank 0 sees them.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/store_server.h"
#include "lib/transport/table/table.h"

namespace gxp {

namespace {

struct Options {
  int ranks = 2;
  std::string transport;  // empty: all
  int rounds = 31;
  TcpOptions tcp;
};

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

// Of one call of `body`, which is called `batch` times in each round.
template <class Body>
double median_seconds(int rounds, int batch, const Body& body) {
  std::vector<double> times;
  for (int i = 0; i < batch; ++i) body();
  for (int round = 0; round < rounds; ++round) {
    const auto start = Deadline::Clock::now();
    for (int i = 0; i < batch; ++i) body();
    times.push_back(std::chrono::duration<double>(Deadline::Clock::now() - start).count() / batch);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[size_t(rounds / 2)];
}

void play(Transport& transport, std::vector<float>& data, size_t bytes) {
  if (transport.rank() > 1) return;
  const int peer = 1 - transport.rank();
  const Memory span = memory_of(data).slice(0, bytes);
  if (transport.rank() == 0) transport.wait(transport.send(peer, 1, span), soon());
  transport.wait(transport.recv(peer, 1, span), soon());
  if (transport.rank() == 1) transport.wait(transport.send(peer, 1, span), soon());
}

void add_floats(const void*, std::byte* target, const std::byte* arrived, size_t bytes) {
  auto* sums = reinterpret_cast<float*>(target);
  const auto* values = reinterpret_cast<const float*>(arrived);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) sums[i] += values[i];
}

void exchange(Transport& transport, std::vector<float>& leaving, std::vector<float>& sums,
              size_t bytes) {
  const int ranks = transport.world_size();
  const int next = (transport.rank() + 1) % ranks;
  const int previous = (transport.rank() + ranks - 1) % ranks;
  const Combiner adder{add_floats, nullptr, sizeof(float)};
  const Ticket receive =
      transport.recv_and_combine(previous, 2, memory_of(sums).slice(0, bytes), adder);
  const Ticket send = transport.send(next, 2, memory_of(leaving).slice(0, bytes));
  transport.wait(receive, soon());
  transport.wait(send, soon());
}

void report(const std::string& transport, std::string_view what, size_t bytes, double seconds) {
  fmt::print("{:>8} {:>9} {:>8} {:>12.2f} us {:>8.2f} GB/s\n", transport, what, format_bytes(bytes),
             seconds * 1e6, double(bytes) / seconds / 1e9);
}

void measure(Transport& transport, const std::string& name, int rounds) {
  constexpr size_t kMost = size_t{16} << 20;
  std::vector<float> leaving(kMost / sizeof(float), 1.0f);
  std::vector<float> sums(leaving.size());
  const bool reports = transport.rank() == 0;
  for (const size_t bytes : {size_t{8}, size_t{64} << 10, size_t{1} << 20, kMost}) {
    const int batch = int(std::clamp(size_t{1 << 20} / bytes, size_t{1}, size_t{200}));
    const double trip = median_seconds(rounds, batch, [&] { play(transport, leaving, bytes); });
    if (reports) report(name, "half_rtt", bytes, trip / 2);
    const double step =
        median_seconds(rounds, batch, [&] { exchange(transport, leaving, sums, bytes); });
    if (reports) report(name, "exchange", bytes, step);
  }
}

// Runs body(store, secret) on so many ranks, of which this process is rank 0; returns when all have
// ended.
void run_ranks(int ranks, Deadline deadline,
               const std::function<void(Store&, const Secret&)>& body) {
  const Secret secret = Secret::generate();
  Fd listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint server = local_endpoint(listener.get());
  const auto run_rank = [&](int rank) {
    Store store(server, rank, ranks, secret, deadline);
    body(store, secret);
    store.close();
  };
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    listener.reset();
    run_rank(rank);
    _exit(0);
  }
  const StoreServer store_server(std::move(listener), ranks, secret);
  run_rank(0);
  while (wait(nullptr) > 0) {
  }
}

void run_all_ranks(const Options& options) {
  run_ranks(options.ranks, soon(), [&](Store& store, const Secret& secret) {
    const auto transport = make_transport(options.transport, {.rank = store.rank(),
                                                              .world_size = options.ranks,
                                                              .store = &store,
                                                              .secret = &secret,
                                                              .deadline = soon(),
                                                              .tcp = options.tcp});
    measure(*transport, options.transport, options.rounds);
    store.barrier("end", soon());
  });
}

void measure_memcpy(int rounds) {
  for (const size_t bytes : {size_t{1} << 20, size_t{16} << 20}) {
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    const double time =
        median_seconds(rounds, 1, [&] { std::memcpy(to.data(), from.data(), bytes); });
    report("memory", "memcpy", bytes, time);
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--ranks") options.ranks = std::max(2, std::atoi(argv[i + 1]));
    if (name == "--rounds") options.rounds = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--transport") options.transport = argv[i + 1];
    if (name == "--protect") options.tcp.protect = parse_protection(argv[i + 1]);
    if (name == "--streams") options.tcp.connections = std::atoi(argv[i + 1]);
    if (name == "--buffer") options.tcp.buffer_bytes = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return options;
}

}  // namespace

}  // namespace gxp

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  gxp::Options options = gxp::parse(argc, argv);
  gxp::measure_memcpy(options.rounds);
  for (const auto& row : gxp::transport_rows()) {
    if (!options.transport.empty() && options.transport != row.name) continue;
    gxp::Options one = options;
    one.transport = row.name;
    gxp::run_all_ranks(one);
  }
}
