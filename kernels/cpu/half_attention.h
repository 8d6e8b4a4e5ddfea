// Attention over half types: the heads of queries that read one head of keys and values are made
// floats in scratch, go through the kernels of attention.h, and come back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/convert.h"

namespace gxp {

// As AttentionForward and AttentionBackward, with elements of `dtype`, bf16 or f16.
struct HalfAttentionForward {
  AttentionShape shape;
  DType dtype;
  AttentionRows<const uint16_t> in;
  uint16_t* out;
  float* lse;
};

struct HalfAttentionBackward {
  AttentionShape shape;
  DType dtype;
  AttentionRows<const uint16_t> in;
  const uint16_t* out;
  const float* lse;
  const uint16_t* dout;
  AttentionRows<uint16_t> gradients;
  float* delta;
};

// `group` = batch row * kv_heads + head of keys and values; groups are independent. `scratch` holds
// scratch_floats(), aligned to 64 bytes.
class HalfAttention {
 public:
  HalfAttention(const AttentionKernels& kernels, const ConvertKernels& convert)
      : kernels_(kernels), convert_(convert) {}
  static size_t scratch_floats(const AttentionShape& shape);
  void forward(const HalfAttentionForward& args, size_t group, float* scratch) const;
  void backward(const HalfAttentionBackward& args, size_t group, float* scratch) const;

 private:
  const AttentionKernels& kernels_;
  const ConvertKernels& convert_;
};

}  // namespace gxp
