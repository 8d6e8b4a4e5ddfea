// The data of tensors as backends pass it to kernels, with the shape and the type asserted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/error.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// `count` floats, of any shape.
inline const float* vector_of(const ConstTensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kF32 && tensor.count() == count);
  return tensor.data<float>();
}
inline float* vector_of(const Tensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kF32 && tensor.count() == count);
  return tensor.data<float>();
}

// A tensor seen as a matrix of its last dimension's rows.
inline const float* matrix_of(const ConstTensor& tensor, size_t rows, size_t columns) {
  GXP_ASSERT(tensor.shape.rows() == rows && tensor.shape.columns() == columns);
  return vector_of(tensor, rows * columns);
}
inline float* matrix_of(const Tensor& tensor, size_t rows, size_t columns) {
  GXP_ASSERT(tensor.shape.rows() == rows && tensor.shape.columns() == columns);
  return vector_of(tensor, rows * columns);
}

// `count` i32.
inline const int32_t* indices_of(const ConstTensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kI32 && tensor.count() == count);
  return tensor.data<int32_t>();
}
// The same, or null if the tensor is empty.
inline const int32_t* indices_or_null(const ConstTensor& tensor, size_t count) {
  return tensor.memory.data == nullptr ? nullptr : indices_of(tensor, count);
}

}  // namespace gxp
