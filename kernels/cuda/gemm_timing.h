// The time of work on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace gxp {

// Milliseconds of one of several repetitions of `start`, which queues on `stream`, after a first
// one that is not counted.
float time_on(cudaStream_t stream, const std::function<void()>& start);

}  // namespace gxp
