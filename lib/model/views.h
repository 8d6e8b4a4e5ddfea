// Views of tensors in other shapes, and of absent tensors.
#pragma once

#include "lib/tensor/tensor.h"

namespace gxp {

inline Tensor flat(const Tensor& tensor) { return tensor.reshape({tensor.count()}); }
// (B, T, C) as (N, C).
inline Tensor matrix(const Tensor& tensor) {
  return tensor.reshape({tensor.shape.rows(), tensor.shape.columns()});
}

// Frozen tensors have no gradient.
inline bool is_trained(const Tensor& gradient) { return gradient.memory.data != nullptr; }

}  // namespace gxp
