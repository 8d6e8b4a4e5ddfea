// Collectives that are queued between the memories of GPUs, whose streams meet (group_barriers.h):
// on emulated ones, since each rank needs its own.
#include "lib/collective/engine/device_memory/device_executor.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"

namespace gxp {
namespace {

constexpr size_t kMostQueuedBytes = 300000;

}  // namespace

TEST_CASE("a call that is queued between GPUs has the bits of one on the host's memory") {
  const int world_size = GENERATE(1, 2, 3, 4, 5, 8);
  const EmulatedGpus gpus(world_size);
  constexpr size_t kOneShot = DeviceExecutor::kOneShotBytes;
  static const std::vector<Row> rows = combinations(
      moving_collectives(), std::vector{DType::kF32, DType::kBF16, DType::kI64, DType::kU8},
      std::vector{ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kPreMulSum, ReduceOp::kMax},
      std::vector<CallSize>{
          {}, {0, 1, 1}, {4096}, {kOneShot}, {kOneShot, 0, 1}, {kMostQueuedBytes}},
      buffer_kinds());
  CAPTURE(world_size);
  require_none_wrong(run_ranks_of("shm", world_size, [&](Communicator& comm) {
    return compare_all(comm, rows, kMostQueuedBytes, true);
  }));
}

TEST_CASE("calls are queued behind each other, of several groups, and one wait is enough") {
  const EmulatedGpus gpus(4);
  const auto sums = run_ranks_of("shm", 4, [&](Communicator& comm) {
    GpuRank gpu(comm, comm.rank());
    const auto half = comm.split(comm.rank() / 2, comm.rank());
    const std::unique_ptr<Stream> stream = gpu.device->make_stream("calls");
    stream->set_watch([&] { comm.check(); });
    const Buffer mapped = gpu.device->allocate_shareable(4000, MemoryKind::kGradients);
    const Buffer apart = gpu.device->allocate(4000, MemoryKind::kGradients);
    std::vector<float> values(1000, 1);
    for (const Buffer* buffer : {&mapped, &apart}) {
      gpu.device->copy(buffer->memory(), memory_of(values));
      for (int turn = 0; turn < 3; ++turn) {
        for (Communicator* group : {&comm, half.get()})
          group->enqueue(
              {.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 1000},
              buffer->memory(), buffer->memory(), *stream);
      }
    }
    stream->finish(Deadline::after(std::chrono::seconds(60)));
    comm.check();
    std::vector<float> found;
    for (const Buffer* buffer : {&mapped, &apart}) {
      gpu.device->copy(memory_of(values), buffer->memory());
      found.insert(found.end(), values.begin(), values.end());
    }
    comm.barrier();  // what peers read is freed next
    return found;
  });
  for (const std::vector<float>& found : sums) CHECK(found == std::vector<float>(2000, 512));
}

TEST_CASE("ranks that share a GPU do not queue calls, nor does a call go to a second stream") {
  const EmulatedGpus gpus(2);
  const auto problems = run_ranks_of("shm", 2, [&](Communicator& comm) -> std::string {
    if (const GpuRank gpu(comm); comm.queues_calls()) return "queues on a shared GPU";
    const GpuRank gpu(comm, comm.rank());
    if (!comm.queues_calls()) return "does not queue";
    const Buffer buffer = gpu.device->allocate(400, MemoryKind::kGradients);
    const Call call{.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 100};
    const auto first = gpu.device->make_stream("first"), second = gpu.device->make_stream("second");
    comm.enqueue(call, buffer.memory(), buffer.memory(), *first);
    first->finish(Deadline::after(std::chrono::seconds(60)));
    try {
      comm.enqueue(call, buffer.memory(), buffer.memory(), *second);
    } catch (const Error& error) {
      return contains(error.what(), "queues all calls on one stream") ? "" : error.what();
    }
    return "took a second stream";
  });
  require_none_wrong(problems);
}

}  // namespace gxp
