// Softmax, loss and gradient of one row of logits: one table for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gxp {

// Formulas: kernels/ops.h. `target` is below `columns`, or negative: loss 0, gradient 0.
struct ClassifierKernels {
  // Returns the loss and replaces the logits with (softmax - onehot(target)) * scale.
  float (*loss_and_gradient)(float* logits, size_t columns, int32_t target, float scale);
  float (*loss)(const float* logits, size_t columns, int32_t target);
};

}  // namespace gxp
