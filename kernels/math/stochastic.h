// Stochastic rounding of one f32 to bf16: up or down with probabilities that make it right on
// average (Gupta et al., arXiv:1502.02551), by random bits that are counted, not drawn.
#pragma once

#include "kernels/math/host_device.h"
#include "kernels/math/random_block.h"

namespace gxp {

// 32 bits for element `place` of the block: MurmurHash3's finaliser (Appleby) of a counter. U is
// uint32_t or a vector of them.
template <class U>
GXP_HOST_DEVICE U random_word(U place, RandomBlock block) {
  U x = place * 0x9e3779b9u + block.offset;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= block.twist;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// The 16 bits of bf16, in the lower half, from a float's 32. Values that bf16 can represent are
// unchanged; a NaN may become another NaN.
template <class U>
GXP_HOST_DEVICE U round_to_bf16(U word, U random) {
  const U rounded = (word + (random >> 16)) >> 16;
  const U nan = U{} + 0x7fc0u;
  return (word & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
}

}  // namespace gxp
