#include "kernels/cuda/gpu_stream.h"

#include "lib/device/cuda_check.h"

namespace gxp {

GpuSize size_of_gpu() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "ask for the GPU in use");
  const auto ask = [&](cudaDeviceAttr attribute) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "ask for the GPU's size");
    return static_cast<size_t>(value);
  };
  return {ask(cudaDevAttrMultiProcessorCount), ask(cudaDevAttrMaxThreadsPerMultiProcessor),
          ask(cudaDevAttrMaxSharedMemoryPerBlockOptin)};
}

}  // namespace gxp
