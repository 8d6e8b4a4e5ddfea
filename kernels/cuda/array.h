// Arrays in a GPU's memory whose element type is known at run time.
#pragma once

#include "lib/base/dtype.h"

namespace gxp {

struct CudaArray {
  void* data = nullptr;
  DType type = DType::kF32;  // f32, bf16 or f16
};

struct ConstCudaArray {
  const void* data = nullptr;
  DType type = DType::kF32;

  ConstCudaArray() = default;
  ConstCudaArray(const void* elements, DType element_type) : data(elements), type(element_type) {}
  ConstCudaArray(const CudaArray& array) : data(array.data), type(array.type) {}  // NOLINT: a view
};

}  // namespace gxp
