// Which random bits an element gets: a key, which names everything that the bits depend on but the
// element (the seed, the step, the tensor), and the element's number. They are therefore
// independent of the rank that rounds, of the time, and of the other elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/hash.h"

namespace gxp {

struct RandomBits {
  uint64_t key = 0;
  size_t first = 0;  // the number of the first element
};

// The elements of a tensor in blocks of so many, each with a key of its own; random_word()
// (stochastic.h) counts within one.
inline constexpr uint32_t kRandomBlock = 1024;

struct RandomBlock {
  uint32_t offset, twist;
};

// The key of the elements from block * kRandomBlock on.
constexpr RandomBlock random_block(uint64_t key, uint64_t block) {
  const uint64_t bits = mix64(mix64(key) + block * 0x9e3779b97f4a7c15u);
  return {uint32_t(bits >> 32), uint32_t(bits)};
}

}  // namespace gxp
