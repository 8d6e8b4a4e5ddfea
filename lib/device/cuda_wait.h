// Waits for a GPU that end at a deadline, which cudaStreamSynchronize() does not know.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string_view>

#include "lib/base/deadline.h"

namespace gxp {

// Asks again and again until all that was started on `stream` is done, and returns the runtime's
// result. Calls `watch`, if there is one, with each question and once when the GPU is done; what it
// throws ends the wait. kDevice at the deadline: "ACT: the GPU is not done after 5 s".
// Cost: the first 0.2 ms without sleep, then a question every 0.1 ms.
cudaError_t wait_for_gpu(cudaStream_t stream, Deadline deadline, std::string_view act,
                         const std::function<void()>& watch = {});

}  // namespace gxp
