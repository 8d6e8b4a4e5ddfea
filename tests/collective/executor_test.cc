#include "lib/collective/engine/native/executor.h"

#include <fmt/format.h>

#include "lib/collective/algorithm/schedule.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"

using namespace gxp;

namespace {

// Small segments, so that few elements already need several.
CommunicatorOptions options_of(std::string_view algorithm) {
  CommunicatorOptions options;
  options.selection.algorithm = algorithm;
  options.selection.segment_bytes = 1024;
  return options;
}

uint64_t bytes_sent(Communicator& comm, size_t count) {
  std::vector<float> data(count, 1.0f);
  comm.all_reduce(memory_of(data), DType::kF32, ReduceOp::kSum);
  return comm.counters().bytes_sent;
}

}  // namespace

TEST_CASE("the wire carries the bytes that the schedule says, for every algorithm") {
  const std::string transport = GENERATE(from_range(rows_and({"inproc"})));
  const int world_size = GENERATE(1, 2, 3, 5);
  const size_t count = GENERATE(0, 1, 7, 4099);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != Collective::kAllReduce) continue;
    CAPTURE(algorithm.name, transport, world_size, count);
    const auto sent = run_ranks_of(
        transport, world_size, [&](Communicator& comm) { return bytes_sent(comm, count); },
        options_of(algorithm.name));
    for (int rank = 0; rank < world_size; ++rank) {
      const CallShape shape{.world_size = world_size, .count = count, .segment = 256};
      CHECK(sent[static_cast<size_t>(rank)] == 4 * count_sent(algorithm, rank, shape).all);
    }
  }
}

TEST_CASE("a ring all-reduce of K bytes sends 2K(N-1)/N bytes from each rank") {
  const int world_size = GENERATE(2, 3, 4, 8);
  const auto n = static_cast<uint64_t>(world_size);
  const size_t count = 1200 * n;
  const auto sent = run_ranks(
      world_size, [&](Communicator& comm) { return bytes_sent(comm, count); }, options_of("ring"));
  for (const uint64_t bytes : sent) CHECK(bytes == 2 * (4 * count) * (n - 1) / n);
}

TEST_CASE("a second call of a size allocates nothing on the device") {
  const auto device = make_cpu_device();  // shared by both ranks
  const auto count_allocations = [&](Communicator& comm) {
    bytes_sent(comm, 4099);
    comm.barrier();
    const uint64_t before = device->tracker().allocation_count();
    bytes_sent(comm, 4099);
    return device->tracker().allocation_count() - before;
  };
  CHECK(run_ranks(2, count_allocations, options_of("ring"), device.get()) ==
        std::vector<uint64_t>{0, 0});
  CHECK(device->tracker().live().total() == 0);
}

TEST_CASE("tags tell calls apart by what they do and by their order") {
  const Algorithm& ring = *find_algorithm("ring", Collective::kAllReduce);
  const Call call{.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 8};
  const auto tag_for = [](const Call& c, const Algorithm& a) { return tag_of(c, a, 1, 1024, 0); };
  const Tag tag = tag_for(call, ring);
  const auto differs = [&](auto change) {
    Call other = call;
    change(other);
    return tag_for(other, ring) != tag;
  };
  CHECK(differs([](Call& c) { c.collective = Collective::kReduceScatter; }));
  CHECK(differs([](Call& c) { c.dtype = DType::kI32; }));
  CHECK(differs([](Call& c) { c.op = ReduceOp::kMax; }));
  CHECK(differs([](Call& c) { c.count = 9; }));
  CHECK(differs([](Call& c) { c.root = 1; }));
  CHECK(differs([](Call& c) { c.sequence = 1; }));
  CHECK(tag_for(call, *find_algorithm("halving-doubling", Collective::kAllReduce)) != tag);
  CHECK(tag_of(call, ring, 2, 1024, 0) != tag);
  CHECK(tag_of(call, ring, 1, 2048, 0) != tag);
  CHECK(tag_of(call, ring, 1, 1024, 1) != tag);
}

TEST_CASE("a call reads as what was asked for") {
  CHECK(to_string(Call{.collective = Collective::kAllReduce,
                       .dtype = DType::kF32,
                       .op = ReduceOp::kMax,
                       .count = 8,
                       .sequence = 17}) == "all-reduce 17 (8 f32, max)");
  CHECK(to_string(Call{.collective = Collective::kBroadcast, .count = 8, .root = 2}) ==
        "broadcast 0 (8 u8 from rank 2)");
  CHECK(to_string(Call{.collective = Collective::kAllGather, .count = 8}) == "all-gather 0 (8 u8)");
  CHECK(to_string(Call{.collective = Collective::kBarrier, .sequence = 4}) == "barrier 4");
}
