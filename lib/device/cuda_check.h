// The one place where a failed call of the CUDA runtime becomes an Error.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "lib/base/error.h"
namespace gxp {

// Throws kDevice with the runtime's own text, "ACT: out of memory (cudaErrorMemoryAllocation)". An
// error of a kernel may show at a later call, so `act` can name the wrong one.
void check_cuda(cudaError_t result, std::string_view act);

}  // namespace gxp
