// The angles of rotary positions: Su et al., arXiv:2104.09864.
#pragma once

#include <cmath>
#include <cstddef>

#include "lib/base/decoder/rotary.h"

namespace gxp {

// By which a pair of channels turns, in double, on the host.
inline double rope_angle(size_t position, double frequency) { return double(position) * frequency; }

// What a pair of channels is multiplied with: computed in double, rounded once.
struct RopeFactors {
  float cosine, sine;
};
inline RopeFactors rope_factors(const Rotary& rotary, size_t position, size_t pair) {
  const double angle = rope_angle(position, rotary.frequencies[pair]);
  return {float(std::cos(angle) * rotary.factor), float(std::sin(angle) * rotary.factor)};
}

}  // namespace gxp
