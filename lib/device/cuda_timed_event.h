// An event of CUDA that has a time.
#pragma once

#include <cuda_runtime_api.h>

#include "lib/device/cuda_check.h"

namespace gxp {

// Belongs to the GPU that is current when it is made.
class TimedEvent {
 public:
  TimedEvent() { check_cuda(cudaEventCreateWithFlags(&event_, 0), "create an event"); }
  ~TimedEvent() { cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "record an event");
  }
  // Both are recorded and done.
  [[nodiscard]] float milliseconds_since(const TimedEvent& before) const {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, before.event_, event_), "time the GPU");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace gxp
