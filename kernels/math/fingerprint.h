// The terms of a fingerprint: a 64-bit sum over the words of some memory, in any order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/math/host_device.h"

namespace gxp {

// Words of 8 bytes that `count` elements of type Bits make, the last one filled up with zeros.
template <class Bits>
GXP_HOST_DEVICE size_t word_count(size_t count) {
  return (count * sizeof(Bits) + 7) / 8;
}

// Word number `word` of `count` elements, whose address need not be that of a word.
template <class Bits>
GXP_HOST_DEVICE uint64_t word_of(const Bits* elements, size_t count, size_t word) {
  constexpr size_t kEach = 8 / sizeof(Bits);
  uint64_t bits = 0;
  for (size_t i = 0; i < kEach && word * kEach + i < count; ++i)
    bits |= uint64_t{elements[word * kEach + i]} << (8 * sizeof(Bits) * i);
  return bits;
}

// A word and its number, mixed. For one number, a bijection of the words: where one of them differs,
// so does the sum. The multipliers are the golden ratio's and one of splitmix64.
GXP_HOST_DEVICE uint64_t fingerprint_term(uint64_t word, uint64_t number) {
  uint64_t mixed = word + number * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 32) * 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 29;
}

}  // namespace gxp
