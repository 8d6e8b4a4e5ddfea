// Time of an all-reduce between hosts: uncompressed, by the chosen algorithm and by the
// hierarchical one, and with each codec.
//   RANK=.. WORLD_SIZE=.. MASTER_ADDR=.. MASTER_PORT=.. GXP_JOB_SECRET=..
//     gxp_compressed_bench [MiB of f32] [rounds]
// or any other launcher that lib/net/identity/identity.h knows; started once for each rank. The time of a
// round is that of its slowest rank; medians over the rounds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/collective/compress/compressed_all_reduce.h"
#include "lib/net/store/rendezvous.h"
#include "lib/transport/table/table.h"

namespace gxp {
namespace {

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

template <class Body>
double median_seconds(Communicator& comm, int rounds, const Body& body) {
  std::vector<double> times;
  for (int i = 0; i <= rounds; ++i) {
    comm.barrier();
    const auto start = Deadline::Clock::now();
    body();
    std::vector<double> time = {
        std::chrono::duration<double>(Deadline::Clock::now() - start).count()};
    comm.all_reduce(memory_of(time), DType::kF64, ReduceOp::kMax);
    if (i > 0) times.push_back(time[0]);  // the first one warms up
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[size_t(rounds / 2)];
}

void report(const Communicator& comm, std::string_view name, double seconds, uint64_t bytes) {
  if (comm.rank() != 0) return;
  fmt::print("{:>12} {:>10.1f} ms {:>12}\n", name, seconds * 1e3, format_bytes(bytes));
}

void measure(Communicator& comm, Device& device, size_t bytes, int rounds) {
  std::vector<float> data(bytes / sizeof(float));
  for (size_t i = 0; i < data.size(); ++i) data[i] = float(i % 1000) / 1000;
  const auto time = [&](std::string_view name, const auto& body) {
    const uint64_t before = comm.counters().bytes_sent;
    const double seconds = median_seconds(comm, rounds, body);
    report(comm, name, seconds, (comm.counters().bytes_sent - before) / uint64_t(rounds + 1));
  };
  if (comm.rank() == 0) fmt::print("{:>12} {:>13} {:>12}\n", "codec", "time", "rank 0 sends");
  for (const char* algorithm : {"auto", "hierarchical"}) {
    comm.set_selection({.algorithm = algorithm, .layout_invariant = false});
    time(algorithm, [&] { comm.all_reduce(memory_of(data), DType::kF32, ReduceOp::kAvg); });
  }
  comm.set_selection({});
  HostGroups groups = split_by_host(comm);
  for (const Codec& codec : codecs()) {
    CompressedAllReduce compressed(codec, {}, data.size(), DType::kF32, groups, device);
    time(codec.name, [&] { compressed.all_reduce(memory_of(data), ReduceOp::kAvg); });
  }
}

void run(size_t bytes, int rounds) {
  const Environment environment = process_environment();
  const RankIdentity identity = identity_from(environment);
  Rendezvous rendezvous = join_job(identity, environment, soon());
  const auto device = make_cpu_device();
  {
    Communicator comm(make_transport("auto", {.rank = identity.rank,
                                              .world_size = identity.world_size,
                                              .store = rendezvous.store.get(),
                                              .secret = &rendezvous.secret,
                                              .deadline = soon(),
                                              .master_addr = rendezvous.master_addr}),
                      *device, {});
    measure(comm, *device, bytes, rounds);
    comm.barrier();
  }
  rendezvous.close(soon());
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  const size_t mib = argc > 1 ? size_t(std::max(1, atoi(argv[1]))) : 64;
  const int rounds = argc > 2 ? std::max(1, atoi(argv[2])) : 5;
  try {
    gxp::run(mib << 20, rounds);
  } catch (const gxp::Error& error) {
    fmt::print(stderr, "gxp_compressed_bench: {}\n", error.what());
    return gxp::exit_code(error.kind());
  }
}
