// Latency and bandwidth between two ranks, beside memcpy's in the same run.
//   gxp_transport_bench [rounds]
// Ranks are processes on this host. Latency is half of a round trip of 8 bytes; bandwidth is one
// way (the receiver answers with 1 byte), one copy in and one out; medians over the rounds.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/net/socket.h"
#include "lib/net/store.h"
#include "lib/net/store_server.h"
#include "lib/transport/table.h"

namespace gxp {

namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

template <class Body>
double median_seconds(int rounds, const Body& body) {
  std::vector<double> times;
  body();
  for (int i = 0; i < rounds; ++i) {
    const auto start = Deadline::Clock::now();
    body();
    times.push_back(std::chrono::duration<double>(Deadline::Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[size_t(rounds / 2)];
}

// Sends `there` bytes from rank 0 to rank 1 and `back` bytes back, `count` times in a row.
void play(Transport& transport, std::vector<std::byte>& data, size_t there, size_t back,
          int count) {
  const int peer = 1 - transport.rank();
  const bool first = transport.rank() == 0;
  const Memory out = memory_of(data).slice(0, first ? there : back);
  const Memory in = memory_of(data).slice(0, first ? back : there);
  for (int i = 0; i < count; ++i) {
    if (first) transport.wait(transport.send(peer, 1, out), soon());
    transport.wait(transport.recv(peer, 1, in), soon());
    if (!first) transport.wait(transport.send(peer, 1, out), soon());
  }
}

void run_rank(const std::string& name, const Endpoint& server, const Secret& secret, int rank,
              int rounds) {
  Store store(server, rank, 2, secret, soon());
  const auto transport = make_transport(
      name,
      {.rank = rank, .world_size = 2, .store = &store, .secret = &secret, .deadline = soon()});
  std::vector<std::byte> data(64 << 20);
  constexpr int kBatch = 100;
  const double tiny = median_seconds(rounds, [&] { play(*transport, data, 8, 8, kBatch); });
  if (rank == 0) fmt::print("{:>6} {:>8} {:>12.2f} us\n", name, "8 B", tiny / kBatch / 2 * 1e6);
  for (const size_t bytes :
       {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20, size_t{64} << 20}) {
    const double time = median_seconds(rounds, [&] { play(*transport, data, bytes, 1, 1); });
    if (rank == 0) {
      fmt::print("{:>6} {:>8} {:>12.2f} us {:>8.2f} GB/s\n", name, format_bytes(bytes), time * 1e6,
                 double(bytes) / time / 1e9);
    }
  }
  store.barrier("end", soon());
  store.close();
}

void run_both(const std::string& name, int rounds) {
  const Secret secret = Secret::generate();
  Fd listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint server = local_endpoint(listener.get());
  if (fork() == 0) {
    listener.reset();
    run_rank(name, server, secret, 1, rounds);
    _exit(0);
  }
  const StoreServer store_server(std::move(listener), 2, secret);
  run_rank(name, server, secret, 0, rounds);
  wait(nullptr);
}

void measure_memcpy(int rounds) {
  for (const size_t bytes : {size_t{1} << 20, size_t{64} << 20}) {
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    const double time = median_seconds(rounds, [&] { std::memcpy(to.data(), from.data(), bytes); });
    fmt::print("{:>6} {:>8} {:>12.2f} us {:>8.2f} GB/s\n", "memcpy", format_bytes(bytes),
               time * 1e6, double(bytes) / time / 1e9);
  }
}

}  // namespace

}  // namespace gxp

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, atoi(argv[1])) : 50;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  gxp::set_log_level(gxp::LogLevel::kWarn);
  gxp::measure_memcpy(rounds);
  for (const auto& row : gxp::transport_rows()) gxp::run_both(std::string(row.name), rounds);
}
