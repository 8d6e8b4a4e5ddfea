// Dropout of one f32 (Srivastava et al., JMLR 15, 2014), by random bits that are counted, not drawn.
#pragma once

#include <algorithm>

#include "kernels/math/stochastic.h"

namespace gxp {

// Of each element 0 with the probability `rate`, below 1, else the element divided by 1 - rate. The
// bits depend on nothing but `bits` and the element's number.
struct Dropout {
  double rate = 0;
  RandomBits bits = {};

  [[nodiscard]] uint32_t lowest_kept() const { return uint32_t(rate * 4294967296.0); }
  [[nodiscard]] float factor() const { return float(1 / (1 - rate)); }
};

// Element `i` of the block.
GXP_HOST_DEVICE float drop_out(float x, uint32_t i, RandomBlock block, uint32_t lowest_kept,
                               float factor) {
  return random_word(i, block) < lowest_kept ? 0.0f : x * factor;
}

// Of `count` elements, of which dropout.bits.first is the first one's number.
inline void drop_out(float* to, const float* from, size_t count, const Dropout& dropout) {
  const uint32_t lowest_kept = dropout.lowest_kept();
  const float factor = dropout.factor();
  for (size_t at = 0; at < count;) {
    const size_t element = dropout.bits.first + at;
    const auto place = uint32_t(element % kRandomBlock);
    const size_t end = std::min(count, at + kRandomBlock - place);
    const RandomBlock block = random_block(dropout.bits.key, element / kRandomBlock);
    for (uint32_t i = place; at < end; ++at, ++i)
      to[at] = drop_out(from[at], i, block, lowest_kept, factor);
  }
}

}  // namespace gxp
