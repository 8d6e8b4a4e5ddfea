// Blocks of a matrix of a half type as floats, and back: one table for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/math/random_block.h"
#include "lib/base/dtype.h"

namespace gxp {

struct HalfBlock {
  DType dtype;  // bf16 or f16
  size_t rows, columns;
  size_t half_stride, float_stride;  // from a row to the next, in elements
};

struct ConvertKernels {
  void (*widen)(float* to, const void* halves, const HalfBlock& block);  // exact
  // Rounded as lib/base/dtype.h says; every NaN becomes the same one.
  void (*narrow)(void* to, const float* floats, const HalfBlock& block);
  // To bf16, stochastically: elements `place` and on of a block, all within it.
  void (*narrow_stochastically)(uint16_t* to, const float* floats, size_t count, uint32_t place,
                                RandomBlock block);
};

}  // namespace gxp
