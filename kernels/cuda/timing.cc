#include "kernels/cuda/timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "lib/device/cuda_check.h"
#include "lib/device/cuda_timed_event.h"
#include "lib/device/cuda_wait.h"
#include "lib/device/stream.h"

namespace gxp {
namespace {

constexpr int kRounds = 5;
constexpr int kRunsATurn = 2;
constexpr std::chrono::milliseconds kWarmUp{20};

void finish(cudaStream_t stream) {
  constexpr const char* kAct = "time the GPU";
  check_cuda(wait_for_gpu(stream, Deadline::after(kComputeTimeout), kAct), kAct);
}

}  // namespace

std::vector<float> times_in_turn(cudaStream_t stream,
                                 std::span<const std::function<void()>> candidates) {
  using Clock = std::chrono::steady_clock;
  const auto warm = Clock::now() + kWarmUp;
  do {
    for (const auto& start : candidates) start();
    finish(stream);
  } while (!candidates.empty() && Clock::now() < warm);
  std::vector<std::array<float, kRounds>> times(candidates.size());
  std::vector<TimedEvent> events(candidates.size() + 1);
  for (int round = 0; round < kRounds; ++round) {
    events[0].record(stream);
    for (size_t i = 0; i < candidates.size(); ++i) {
      for (int run = 0; run < kRunsATurn; ++run) candidates[i]();
      events[i + 1].record(stream);
    }
    finish(stream);
    for (size_t i = 0; i < candidates.size(); ++i)
      times[i][size_t(round)] = events[i + 1].milliseconds_since(events[i]) / kRunsATurn;
  }
  std::vector<float> medians;
  for (auto& of_way : times) {
    std::ranges::nth_element(of_way, of_way.begin() + kRounds / 2);
    medians.push_back(of_way[kRounds / 2]);
  }
  return medians;
}

size_t fastest_in_turn(cudaStream_t stream, std::span<const std::function<void()>> candidates) {
  const std::vector<float> times = times_in_turn(stream, candidates);
  return size_t(std::ranges::min_element(times) - times.begin());
}

}  // namespace gxp
