// The collectives over the transports that processes use; the other tests run over inproc.
#include <algorithm>
#include <string>
#include <vector>

#include "lib/collective/algorithm/algorithm.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/collective/values.h"

using namespace gxp;

namespace {

// All operations on `count` floats; how many elements are wrong, and the bytes that left meanwhile.
struct Outcome {
  size_t wrong = 0;
  uint64_t all_reduce_bytes = 0;
};

Outcome run_all_operations(Communicator& comm, size_t count) {
  Outcome outcome;
  Values data = small_integers(DType::kF32, comm.rank(), count);
  comm.all_reduce(data.memory(), DType::kF32, ReduceOp::kSum);
  outcome.all_reduce_bytes = comm.counters().bytes_sent;
  Values scattered = small_integers(DType::kF32, comm.rank(), count);
  comm.reduce_scatter(scattered.memory(), DType::kF32, ReduceOp::kSum);
  comm.all_gather(scattered.memory(), DType::kF32);
  Values sent = small_integers(DType::kF32, comm.rank(), count);
  comm.start_broadcast(sent.memory(), 0).wait();
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int rank = 0; rank < comm.world_size(); ++rank) sum += small_integer(rank, i);
    outcome.wrong += data.get(i) != sum || scattered.get(i) != sum;
    outcome.wrong += sent.get(i) != small_integer(0, i);
  }
  comm.barrier();  // nobody hangs up on a rank that still works
  return outcome;
}

}  // namespace

TEST_CASE("collectives give the same over shm and tcp, with the formula's bytes") {
  const std::string transport = GENERATE("shm", "tcp");
  const std::string name = GENERATE("ring", "halving-doubling", "direct");
  const int world_size = GENERATE(2, 3);
  const size_t count = GENERATE(7, 300007);
  CAPTURE(transport, name, world_size, count);
  CommunicatorOptions options;
  options.algorithm = name;
  options.segment_bytes = 64 << 10;
  const auto outcomes = run_ranks_of(
      transport, world_size, [&](Communicator& comm) { return run_all_operations(comm, count); },
      options);
  const Algorithm& algorithm = *find_algorithm(name, Collective::kAllReduce);
  for (int rank = 0; rank < world_size; ++rank) {
    const Outcome& outcome = outcomes[static_cast<size_t>(rank)];
    CHECK(outcome.wrong == 0);
    CHECK(outcome.all_reduce_bytes ==
          4 * algorithm.elements_sent(rank, {.world_size = world_size, .count = count}));
  }
}

TEST_CASE("groups of one split work beside each other") {
  const std::string transport = GENERATE("shm", "tcp", "shm+tcp");
  CAPTURE(transport);
  const auto act = [](Communicator& comm) {
    const auto neighbours = comm.split(comm.rank() / 2, comm.rank());
    const auto across = comm.split(comm.rank() % 2, comm.rank());
    int wrong = 0;
    for (int call = 0; call < 200; ++call) {
      std::vector<int> data(size_t(1) << call % 14, comm.rank());
      Communicator& group = call % 3 == 0 ? *across : *neighbours;
      const int want = call % 3 == 0 ? 2 * (comm.rank() % 2) + 2 : 4 * (comm.rank() / 2) + 1;
      group.all_reduce(memory_of(data), DType::kI32, ReduceOp::kSum);
      wrong += int(std::count(data.begin(), data.end(), want) != std::ssize(data));
    }
    comm.barrier();  // nobody hangs up on a rank that still works
    return wrong;
  };
  CHECK(run_ranks_of(transport, 4, act, {}) == std::vector<int>(4, 0));
}
