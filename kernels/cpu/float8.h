// Rounding to 8 bits (kernels/math/float8.h) for one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/math/float8_type.h"

namespace gxp {

struct Float8Kernels {
  // The largest bits of |x|: above those of all numbers if there is a NaN or an infinity.
  uint32_t (*largest)(const float* x, size_t count);
  // To bf16, which holds every number of the types: x * scale, rounded, over `scale`.
  void (*round)(uint16_t* to, const float* x, size_t count, Float8 type, float scale);
};

}  // namespace gxp
