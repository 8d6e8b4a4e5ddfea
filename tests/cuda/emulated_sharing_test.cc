// What can be in the way of shared memory, on an emulated GPU that lacks it.
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/cuda.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"

namespace gxp {

TEST_CASE("memory that the driver does not share is allocated all the same, and says why not") {
  const auto device = make_cuda_device(0);
  set_emulated_sharing(CUDA_ERROR_NOT_SUPPORTED);
  const Buffer buffer = device->allocate_shareable(4096, MemoryKind::kGradients);
  set_emulated_sharing(CUDA_SUCCESS);
  CHECK(buffer.memory().bytes == 4096);
  CHECK(device->sharing()->find(buffer.memory()).allocation == 0);
  CHECK(contains(device->sharing()->support().reason, "file descriptor here (error 801)"));
}

TEST_CASE("shared memory that cannot be had is an error as other memory's") {
  const auto device = make_cuda_device(0);
  CHECK_THROWS_WITH(device->allocate_shareable(size_t{1} << 50, MemoryKind::kGradients),
                    Catch::Contains("out of memory"));
}

TEST_CASE("ranks whose GPUs have no peer access do without, and all say which") {
  const EmulatedGpus gpus(2, false);
  const auto reasons = run_ranks_of("shm", 2, [](Communicator& comm) {
    return GpuRank(comm, comm.rank()).joined.support().reason;
  });
  set_emulated_gpus(2, true);
  for (const std::string& reason : reasons)
    CHECK(reason == "rank 0: GPU 0 has no peer access to GPU 1 (gxp topo shows P2P)");
  const auto problems = run_ranks_of("shm", 2, [](Communicator& comm) {
    GpuRank gpu(comm, comm.rank());
    return GpuBuffers(*gpu.device, 400)
        .compare(comm, {.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 100},
                 BufferKind::kSharedInPlace);
  });
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE("ranks do without shared memory if one of them cannot make it") {
  const auto reasons = run_ranks_of("shm", 3, [](Communicator& comm) {
    const auto device = make_cuda_device(0);
    if (comm.rank() == 1) set_emulated_sharing(CUDA_ERROR_NOT_PERMITTED);
    if (comm.rank() == 1)
      static_cast<void>(device->allocate_shareable(4096, MemoryKind::kGradients));
    if (comm.rank() == 1) set_emulated_sharing(CUDA_SUCCESS);
    comm.barrier();
    const auto folds = make_cuda_folds();
    const JoinedDevice joined = comm.join_device({*device, *folds});
    return joined.support().reason + (comm.supports_memory(MemorySpace::kCuda) ? "!" : "");
  });
  for (const std::string& reason : reasons) {
    CHECK(contains(reason, "rank 1: the NVIDIA driver cannot export memory of GPU 0"));
    CHECK(!contains(reason, "!"));
  }
}

}  // namespace gxp
