#include "kernels/cuda/cuda_folds.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/system_flags.cuh"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

// All that a launch is told.
struct MeetingTable {
  MeetingBoard* boards[kMostMeeting];
  unsigned members;
  unsigned rank;
  MeetingState* state;
  MeetingControl* control;
};

// The host's word and the clock are looked at once in so many rests: the one is a read over PCIe.
constexpr unsigned kRestNs = 40;
constexpr unsigned kRestsPerLook = 64;

class DeviceFlags {
 public:
  __device__ explicit DeviceFlags(const MeetingControl& control)
      : control_(control), begin_(clock_ns()) {}
  __device__ void release(uint32_t* word, uint32_t value) { store_release(word, value); }
  __device__ uint32_t acquire(uint32_t* word) { return load_acquire(word); }
  __device__ Met pause() {
    rest_ns(kRestNs);
    if (++rests_ % kRestsPerLook != 0) return Met::kYes;
    if (load_acquire(&control_.aborted) != 0) return Met::kAborted;
    return clock_ns() - begin_ > control_.limit_ns ? Met::kLate : Met::kYes;
  }

 private:
  const MeetingControl& control_;
  uint64_t begin_;
  unsigned rests_ = 0;
};

// One block, a thread for each member. What earlier kernels of the stream have written is released
// with the words.
__global__ __launch_bounds__(kMostMeeting) void meet_kernel(
    const __grid_constant__ MeetingTable table) {
  MeetingState& state = *table.state;
  MeetingControl& control = *table.control;
  const unsigned peer = threadIdx.x;
  const uint32_t meeting = state.met + 1;
  const bool takes_part = state.missed == 0 && peer < table.members && peer != table.rank;
  DeviceFlags flags(control);
  if (takes_part) arrive(flags, &table.boards[peer]->words[table.rank], meeting);
  __syncthreads();  // so that nobody's arrival waits for others'
  if (takes_part) {
    const Met met = await(flags, &table.boards[table.rank]->words[peer], meeting);
    if (met != Met::kYes) {
      state.missed = uint32_t(met);
      control.awaited = peer;
      store_release(&control.missed, uint32_t(met));
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  state.met = meeting;
  if (state.missed == 0) store_release(&control.met, meeting);
}

}  // namespace

void queue_meeting(Stream& stream, const Meeting& meeting) {
  GXP_ASSERT(meeting.boards.size() <= kMostMeeting);
  MeetingTable table{.boards = {},
                     .members = unsigned(meeting.boards.size()),
                     .rank = unsigned(meeting.rank),
                     .state = meeting.state,
                     .control = meeting.control};
  std::ranges::copy(meeting.boards, table.boards);
  const auto config =
      config_of(native_stream(stream), dim3(1), whole_warps(table.members, kMostMeeting));
  check_cuda(cudaLaunchKernelEx(&config, meet_kernel, table), "launch a meeting of ranks");
}

}  // namespace gxp
