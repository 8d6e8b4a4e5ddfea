// Which heads tensor cores take, and the launches of their kernels.
#pragma once

#include <type_traits>

#include "kernels/cuda/attention/attention_mma.cuh"
#include "kernels/cuda/launch.cuh"

namespace gxp::mma_attention {

// Calls visit(T{}, an integral constant: the head size).
template <class Visit>
cudaError_t with_sizes(DType dtype, size_t head_size, const Visit& visit) {
  const auto with_size = [&](auto element) {
    switch (head_size) {
      case 64:
        return visit(element, std::integral_constant<int, 64>());
      case 96:
        return visit(element, std::integral_constant<int, 96>());
      case 128:
        return visit(element, std::integral_constant<int, 128>());
      default:
        return cudaErrorInvalidValue;
    }
  };
  switch (dtype) {
    case DType::kBF16:
      return with_size(Bf16{});
    case DType::kF16:
      return with_size(Fp16{});
    default:
      return cudaErrorInvalidValue;
  }
}

// More than 48 KiB of shared memory must be asked for.
template <class Args>
cudaError_t launch(cudaStream_t stream, void (*kernel)(Args), unsigned blocks, int shared_bytes,
                   const Args& args) {
  if (blocks == 0) return cudaSuccess;  // a launch of no blocks is an error
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  const auto config = config_of(stream, {blocks}, kThreads, size_t(shared_bytes));
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace gxp::mma_attention
