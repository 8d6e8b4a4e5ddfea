// The kinds of operations of kernels/ops.h, for timing: lib/replay/kernel_work.h assigns each to a
// class.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/ops.h"

namespace gxp {

enum class OpsCall {
  kProduct,        // also a linear layer's with its GELU, and that of its input's gradient
  kWeightProduct,  // of a weight's gradient, and of its bias'
  kBiasSums,       // a bias' gradient alone
  kStreamOutputs,  // of the residual stream's gradient: rounded for products
  kNorm,
  kNormAgain,
  kNormBackward,
  kActivation,  // activation functions, also gated, forward and backward
  kRotation,
  kAttention,
  kAttentionBackward,
  kEmbedding,
  kClassifier,
  kPass,  // any other: the rest of the element-wise ones, conversions, sums
};

inline OpsCall call_of(const MatmulOptions& options) {
  return options.transpose_a ? OpsCall::kWeightProduct : OpsCall::kProduct;
}
inline OpsCall call_of(const StreamOutputs& out) {
  return out.rounded.memory.data != nullptr ? OpsCall::kStreamOutputs : OpsCall::kBiasSums;
}
inline OpsCall call_of(const LinearBackward& layer, LinearPart part) {
  if (part == LinearPart::kInput) return OpsCall::kProduct;
  if (part == LinearPart::kActivation) return OpsCall::kActivation;
  return layer.dweight.memory.data != nullptr ? OpsCall::kWeightProduct : OpsCall::kBiasSums;
}
inline OpsCall call_of(const ElementwiseCall& call) {
  return form_of(call.math).is_activation ? OpsCall::kActivation : OpsCall::kPass;
}

}  // namespace gxp
