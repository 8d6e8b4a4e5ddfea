// Rotary positions for tests.
#pragma once

#include <cmath>

#include "kernels/ops.h"

namespace gxp {

// Frequencies theta^(-2 i / channels), as of a head whose first `channels` turn.
inline Rotary rotary_of(size_t channels, double theta, double factor = 1) {
  Rotary rotary = {{}, factor};
  for (size_t i = 0; i < channels / 2; ++i)
    rotary.frequencies.push_back(std::pow(theta, -2.0 * double(i) / double(channels)));
  return rotary;
}

// All heads of a row that has nothing else.
inline HeadColumns side_by_side(size_t heads, size_t size) { return {0, heads, size, size}; }

}  // namespace gxp
