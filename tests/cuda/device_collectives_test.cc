// Collectives on the memory of GPUs that ranks share or that reach each other: the host's bits.
#include "lib/collective/engine/device_memory/device_executor.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"

namespace gxp {
namespace {

const std::vector<DType> kCallTypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                       DType::kI64, DType::kI32, DType::kI8,  DType::kU8};

constexpr size_t kMostBytes = 300000;

}  // namespace

TEST_CASE("a call on GPUs' memory has the bits of one on the host's") {
  const int world_size = GENERATE(1, 2, 3, 4, 5, 8);
  // Around what goes in one shot.
  constexpr size_t kOneShot = DeviceExecutor::kOneShotBytes;
  static const std::vector<Row> rows = combinations(
      moving_collectives(), kCallTypes,
      std::vector<ReduceOp>(reduce_ops().begin(), reduce_ops().end()),
      std::vector<CallSize>{
          {}, {0, 0, 1}, {0, 1, -1}, {0, 1, 1}, {4096}, {kOneShot}, {kOneShot, 0, 1}, {kMostBytes}},
      buffer_kinds());
  CAPTURE(world_size);
  require_none_wrong(run_ranks_of(
      "shm", world_size, [&](Communicator& comm) { return compare_all(comm, rows, kMostBytes); }));
}

TEST_CASE("a large call on GPUs' memory goes through many tiles with the host's bits") {
  const int world_size = GENERATE(2, 3);
  using enum BufferKind;
  static const std::vector<Row> rows =
      combinations(moving_collectives(), std::vector{DType::kF32, DType::kBF16},
                   std::vector{ReduceOp::kSum, ReduceOp::kPreMulSum},
                   std::vector<CallSize>{{1 << 20}, {9 << 20, 0, 1}},
                   std::vector{kSharedInPlace, kOrdinaryInPlace, kOrdinaryApart});
  CAPTURE(world_size);
  require_none_wrong(run_ranks_of("shm", world_size, [&](Communicator& comm) {
    return compare_all(comm, rows, (9 << 20) + 64);
  }));
}

TEST_CASE("groups of ranks that have a GPU call on its memory, in turn with the others") {
  const auto problems = run_ranks_of("shm", 5, [&](Communicator& comm) -> std::string {
    GpuRank gpu(comm);
    const auto part = comm.split(comm.rank() % 2, -comm.rank());
    const auto alone = comm.split(comm.rank(), 0);
    GpuBuffers buffers(*gpu.device, 1 << 20);
    for (const BufferKind kind : buffer_kinds()) {
      for (Communicator* group : {&comm, part.get(), alone.get(), part.get()}) {
        if (!group->supports_memory(MemorySpace::kCuda)) return "a group does not reach its GPUs";
        for (const size_t count : {1000, 100000}) {
          const std::string problem =
              buffers.compare(*group,
                              make_call(Collective::kAllReduce, DType::kF32, ReduceOp::kSum, count,
                                        group->world_size()),
                              kind);
          if (!problem.empty()) return problem;
        }
      }
    }
    return "";
  });
  require_none_wrong(problems);
}

TEST_CASE("memory that is allocated, shared and freed again and again can be reached each time") {
  const auto problems = run_ranks_of("shm", 3, [&](Communicator& comm) -> std::string {
    GpuRank gpu(comm);
    for (int i = 0; i < 300; ++i) {
      GpuBuffers buffers(*gpu.device, 4096);
      // One rank's alone: the others, whose offers nobody needs, take part all the same.
      const auto kind = i % 3 == 0 ? BufferKind::kDifferByRank : BufferKind::kSharedApart;
      const std::string problem = buffers.compare(
          comm, make_call(Collective::kAllReduce, DType::kF32, ReduceOp::kSum, 100, 3), kind);
      if (!problem.empty()) return problem;
    }
    return "";
  });
  require_none_wrong(problems);
}

TEST_CASE("calls count the bytes that the host's count") {
  const auto differences = run_ranks_of("shm", 4, [&](Communicator& comm) {
    GpuRank gpu(comm);
    const Buffer buffer = gpu.device->allocate_shareable(4000, MemoryKind::kGradients);
    std::vector<float> host(1000);
    const auto sent_by = [&](Memory memory) {
      const uint64_t before = comm.counters().bytes_sent;
      comm.all_reduce(memory, DType::kF32, ReduceOp::kSum);
      return comm.counters().bytes_sent - before;
    };
    return int64_t(sent_by(memory_of(host))) - int64_t(sent_by(buffer.memory()));
  });
  for (const int64_t difference : differences) CHECK(difference == 0);
}

TEST_CASE("a rank that calls on the host's memory where others call on a GPU's is named") {
  std::vector<std::string> texts(2);
  CHECK_THROWS_AS(
      run_ranks_of("shm", 2,
                   [&](Communicator& comm) {
                     GpuRank gpu(comm);
                     const Buffer buffer = gpu.device->allocate(400, MemoryKind::kGradients);
                     std::vector<float> host(100);
                     const Memory memory = comm.rank() == 0 ? memory_of(host) : buffer.memory();
                     try {
                       comm.all_reduce(memory, DType::kF32, ReduceOp::kSum);
                     } catch (const Error& error) {
                       texts[size_t(comm.rank())] = error.what();
                       throw;
                     }
                     return 0;
                   }),
      Error);
  CHECK((contains(texts[0], "in device memory") || contains(texts[1], "in device memory")));
}

TEST_CASE("what cannot be done on a GPU's memory is an error that says so") {
  const auto texts = run_ranks_of("shm", 1, [&](Communicator& comm) {
    const auto device = make_cuda_device(0);
    const Buffer buffer = device->allocate(400, MemoryKind::kGradients);
    try {
      comm.all_reduce(buffer.memory(), DType::kF32, ReduceOp::kSum);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  });
  CHECK(contains(texts[0], "copy it to the host first"));
  const auto reasons =
      run_ranks(2, [](Communicator& comm) { return GpuRank(comm).joined.support().reason; });
  for (const std::string& reason : reasons)
    CHECK(contains(reason, "rank 0: ranks over transport inproc share no memory"));
}

}  // namespace gxp
