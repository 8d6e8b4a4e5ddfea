// Inputs whose reduction is exact in every order, and what must come out: the idea of nccl-tests'
// "verifiable" data. Pure.
//
// Element i of rank r is a fixed pseudo-random value, the same for i and i + kPeriod, chosen so
// that no fold of any subset of the ranks is rounded:
//   sum, mulsum  floats: integers so small that the sum of their magnitudes fits the significand;
//                integers: all values, since sums wrap
//   avg          integers so small that the sum does not overflow. The last step, times
//                1 / world_size, is rounded: a float may be 2 ulp off
//   prod         floats: one rank has a full significand, six a power of two, the rest a sign;
//                integers: odd values, so that products wrap but never end at 0
//   min, max     all magnitudes that every float type has; all integers
//                With a codec there are no more than 2^11, so that half precision holds the sum
//   bitwise,     mostly the neutral element, so that the result depends on every rank
//   logical
// Without a reduction the values are those of min and max. The period is prime, so bytes that land
// at a wrong offset are found unless they are off by a multiple of kPeriod elements.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"

namespace gxp {

inline constexpr size_t kPeriod = 16381;

struct Pattern {
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kMax;
  int world_size = 1;
  double codec_error = 0;  // Codec::error of an all-reduce's sum or average; 0: no codec
};

// Elements 0 .. count - 1 (at most a period) of what rank `rank` has.
std::vector<std::byte> pattern_input(const Pattern& pattern, int rank, size_t count = kPeriod);

// The same of the reduction over all ranks, computed on integers and long doubles with no use of
// the kernels under test. kPreMulSum: with the factors of call_of().
std::vector<std::byte> pattern_reduced(const Pattern& pattern, size_t count = kPeriod);

// Whether two elements count as equal: in all bits; an average of floats, within 2 ulp; with a
// codec, within what encoding each host's sum and then their sum can lose, twice its error.
bool same_element(const Pattern& pattern, const std::byte* got, const std::byte* want);

std::string element_text(DType dtype, const std::byte* element);  // "3", "-0.25"

}  // namespace gxp
