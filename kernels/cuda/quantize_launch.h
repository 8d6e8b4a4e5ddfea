// Launches of the codecs of kernels/quantize.h, to the same bits, between arrays of the GPU's
// memory. Encoded bytes begin at an even address, else cudaErrorInvalidValue.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/quantize.h"

namespace gxp {

// Memory that one call reads and writes in addition to encoded bytes.
struct CudaWire {
  WireFormat format;
  size_t count;
};

cudaError_t launch_encode(cudaStream_t stream, const CudaWire& wire, std::byte* out, const float* x,
                          float* residual);
cudaError_t launch_decode(cudaStream_t stream, const CudaWire& wire, float* out,
                          const std::byte* encoded);
cudaError_t launch_decode_and_add(cudaStream_t stream, const CudaWire& wire, float* out,
                                  const std::byte* encoded);

}  // namespace gxp
