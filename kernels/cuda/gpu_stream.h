// A stream and the size of its GPU, from which launches take how many blocks they have.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gxp {

struct GpuSize {
  size_t multiprocessors;
  size_t threads;       // that one of them holds at once
  size_t shared_bytes;  // that a block may have, of kernels that ask for more than 48 KiB
};
// For the calling thread's GPU. Throws kDevice. Cost: under a microsecond.
GpuSize size_of_gpu();

struct GpuStream {
  cudaStream_t stream;
  GpuSize gpu;
  operator cudaStream_t() const { return stream; }  // NOLINT: goes wherever a stream does
};

}  // namespace gxp
