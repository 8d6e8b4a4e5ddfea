#include "kernels/cuda/cuda_folds.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/system_flags.cuh"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

// All that a launch is told.
struct BarrierTable {
  BarrierBoard* boards[kMaxBarrierRanks];
  unsigned members;
  unsigned rank;
  BarrierState* state;
  BarrierControl* control;
};

// The host's word and the clock are looked at once in so many rests: the one is a read over PCIe.
constexpr unsigned kRestNs = 40;
constexpr unsigned kRestsPerLook = 64;

class DeviceFlags {
 public:
  __device__ explicit DeviceFlags(const BarrierControl& control)
      : control_(control), begin_(clock_ns()) {}
  __device__ void release(uint32_t* word, uint32_t value) { store_release(word, value); }
  __device__ uint32_t acquire(uint32_t* word) { return load_acquire(word); }
  __device__ BarrierEnd pause() {
    rest_ns(kRestNs);
    if (++rests_ % kRestsPerLook != 0) return BarrierEnd::kPassed;
    if (load_acquire(&control_.aborted) != 0) return BarrierEnd::kAborted;
    return clock_ns() - begin_ > control_.limit_ns ? BarrierEnd::kLate : BarrierEnd::kPassed;
  }

 private:
  const BarrierControl& control_;
  uint64_t begin_;
  unsigned rests_ = 0;
};

// One block, a thread for each member. What earlier kernels of the stream have written is released
// with the words.
__global__ __launch_bounds__(kMaxBarrierRanks) void barrier_kernel(
    const __grid_constant__ BarrierTable table) {
  BarrierState& state = *table.state;
  BarrierControl& control = *table.control;
  const unsigned peer = threadIdx.x;
  const uint32_t barrier = state.passed + 1;
  const bool takes_part = state.missed == 0 && peer < table.members && peer != table.rank;
  DeviceFlags flags(control);
  if (takes_part) arrive(flags, &table.boards[peer]->words[table.rank], barrier);
  __syncthreads();  // so that nobody's arrival waits for others'
  if (takes_part) {
    const BarrierEnd passed = await(flags, &table.boards[table.rank]->words[peer], barrier);
    if (passed != BarrierEnd::kPassed) {
      state.missed = uint32_t(passed);
      control.awaited = peer;
      store_release(&control.missed, uint32_t(passed));
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  state.passed = barrier;
  if (state.missed == 0) store_release(&control.passed, barrier);
}

}  // namespace

void queue_barrier(Stream& stream, const DeviceBarrier& barrier) {
  GXP_ASSERT(barrier.boards.size() <= kMaxBarrierRanks);
  BarrierTable table{.boards = {},
                     .members = unsigned(barrier.boards.size()),
                     .rank = unsigned(barrier.rank),
                     .state = barrier.state,
                     .control = barrier.control};
  std::ranges::copy(barrier.boards, table.boards);
  const auto config =
      config_of(native_stream(stream), dim3(1), whole_warps(table.members, kMaxBarrierRanks));
  check_cuda(cudaLaunchKernelEx(&config, barrier_kernel, table), "launch a barrier of ranks");
}

}  // namespace gxp
