#include "lib/device/cuda_wait.h"

#include <chrono>
#include <thread>

#include "lib/base/error.h"

namespace gxp {
namespace {

// A wait that is longer than kEagerPolling leaves its core, and the driver's locks, to others: it
// asks the driver again after kSleep, so about 0.1 ms late at worst, with Linux's slack of 50 us for
// timers.
constexpr std::chrono::microseconds kEagerPolling{200};
constexpr std::chrono::microseconds kSleep{50};
// A driver answers within a few microseconds. A query that takes longer does the work itself, as the
// emulated GPU's does: no sleep would help it.
constexpr std::chrono::microseconds kQuery{10};

}  // namespace

cudaError_t wait_for_gpu(cudaStream_t stream, Deadline deadline, std::string_view act,
                         const std::function<void()>& watch) {
  using Clock = std::chrono::steady_clock;
  auto asked = Clock::now();
  const auto slow = asked + kEagerPolling;
  cudaError_t state = cudaStreamQuery(stream);
  for (; state == cudaErrorNotReady; state = cudaStreamQuery(stream)) {
    const bool at_work = Clock::now() - asked > kQuery;
    if (watch) watch();
    if (deadline.expired())
      fail(ErrorKind::kDevice, "{}: the GPU has not finished after {:g} s", act,
           deadline.seconds());
    if (at_work || Clock::now() < slow)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kSleep);
    asked = Clock::now();
  }
  if (watch) watch();
  return state;
}

}  // namespace gxp
