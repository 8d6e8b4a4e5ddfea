#include "kernels/cuda/gemm_timing.h"

#include <utility>

#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

constexpr int kRepetitions = 5;

class TimedEvent {
 public:
  TimedEvent() { check_cuda(cudaEventCreateWithFlags(&event_, 0), "create an event"); }
  ~TimedEvent() { cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "record an event");
  }
  [[nodiscard]] float milliseconds_since(const TimedEvent& before) const {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, before.event_, event_), "time the GPU");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

float time_on(cudaStream_t stream, const std::function<void()>& start) {
  TimedEvent before;
  TimedEvent after;
  start();
  before.record(stream);
  for (int i = 0; i < kRepetitions; ++i) start();
  after.record(stream);
  check_cuda(cudaStreamSynchronize(stream), "time the GPU");
  return after.milliseconds_since(before) / kRepetitions;
}

}  // namespace gxp
