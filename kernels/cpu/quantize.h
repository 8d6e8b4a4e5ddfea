// Encoding f32 for slow links: kernels/quantize.h for one instruction set.
#pragma once

#include <cstddef>

#include "kernels/quantize.h"

namespace gxp {

struct QuantizeKernels {
  void (*encode)(std::byte* out, const float* x, size_t count, WireFormat format, float* residual);
  void (*decode)(float* out, const std::byte* encoded, size_t count, WireFormat format);
  void (*decode_and_add)(float* out, const std::byte* encoded, size_t count, WireFormat format);
};

}  // namespace gxp
