// From an array's run-time element type to the types of half.cuh.
#pragma once

#include "kernels/cuda/array.h"
#include "kernels/cuda/half.cuh"

namespace gxp {

// Calls visit(T{}) with float, Bf16 or Fp16.
template <class Visit>
cudaError_t with_element(DType type, const Visit& visit) {
  switch (type) {
    case DType::kF32:
      return visit(float{});
    case DType::kBF16:
      return visit(Bf16{});
    case DType::kF16:
      return visit(Fp16{});
    default:
      return cudaErrorInvalidValue;
  }
}

template <class T>
T* elements(const CudaArray& array) {
  return static_cast<T*>(array.data);
}
template <class T>
const T* elements(const ConstCudaArray& array) {
  return static_cast<const T*>(array.data);
}

}  // namespace gxp
