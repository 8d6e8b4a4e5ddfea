// Tensors seen in other shapes.
#pragma once

#include "lib/tensor/tensor.h"

namespace gxp {

inline Tensor flat(const Tensor& tensor) { return tensor.reshape({tensor.count()}); }
// (B, T, C) as (N, C).
inline Tensor matrix(const Tensor& tensor) {
  return tensor.reshape({tensor.shape.rows(), tensor.shape.columns()});
}

}  // namespace gxp
