// The emulated GPU's streams, for what runs on them.
#pragma once

#include <functional>

#include "tests/cuda/emulation/cuda_runtime_api.h"

namespace gxp::emulation {

// Queues `work`; runs it at once on the default stream, keeps it where the stream is captured.
[[nodiscard]] cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

}  // namespace gxp::emulation
