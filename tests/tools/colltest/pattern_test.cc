#include "lib/tools/colltest/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/reduce_op.h"
#include "lib/device/memory.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr size_t kElements = 199;
constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kI32, DType::kI8,  DType::kU8};
using Bytes = std::vector<std::byte>;

Bytes scaled_input(const Pattern& pattern, int rank) {
  Bytes input = pattern_input(pattern, rank, kElements);
  if (pattern.op == ReduceOp::kPreMulSum) scale(memory_of(input), pattern.dtype, 1 + rank % 2);
  return input;
}

// The reduction in a random order of pairs, by the kernels.
Bytes fold_in_random_order(const Pattern& pattern, unsigned seed) {
  std::vector<Bytes> left;
  for (int rank = 0; rank < pattern.world_size; ++rank) left.push_back(scaled_input(pattern, rank));
  std::mt19937 random(seed);
  while (left.size() > 1) {
    std::shuffle(left.begin(), left.end(), random);
    fold(memory_of(left[0]), memory_of(left.back()), pattern.dtype, pattern.op);
    left.pop_back();
  }
  if (pattern.op == ReduceOp::kAvg)
    scale(memory_of(left[0]), pattern.dtype, 1.0 / pattern.world_size);
  return left[0];
}

size_t count_wrong(const Pattern& pattern, const Bytes& got, const Bytes& want) {
  const size_t element = size_of(pattern.dtype);
  size_t wrong = 0;
  for (size_t at = 0; at < want.size(); at += element)
    wrong += !same_element(pattern, got.data() + at, want.data() + at);
  return wrong;
}

TEST_CASE("every order of folding gives the expected elements exactly", "[bench]") {
  const int world_size = GENERATE(1, 2, 3, 8, 37, 300);
  for (const DType dtype : kTypes) {
    for (const ReduceOp op : reduce_ops()) {
      if (!supports(op, dtype)) continue;
      CAPTURE(world_size, to_string(dtype), to_string(op));
      const Pattern pattern{dtype, op, world_size};
      const Bytes want = pattern_reduced(pattern, kElements);
      for (const unsigned seed : {1u, 2u, 3u})
        CHECK(count_wrong(pattern, fold_in_random_order(pattern, seed), want) == 0);
    }
  }
}

TEST_CASE("a rank that is left out changes most results", "[bench]") {
  const DType dtype = GENERATE(DType::kF32, DType::kBF16, DType::kU8);
  for (const ReduceOp op : reduce_ops()) {
    if (!supports(op, dtype)) continue;
    CAPTURE(to_string(dtype), to_string(op));
    const Pattern pattern{dtype, op, 3};
    Bytes partial = scaled_input(pattern, 0);
    fold(memory_of(partial), memory_of(scaled_input(pattern, 1)), dtype, op);
    if (op == ReduceOp::kAvg) scale(memory_of(partial), dtype, 1.0 / 3);
    CHECK(count_wrong(pattern, partial, pattern_reduced(pattern, kElements)) > kElements / 10);
  }
}

TEST_CASE("averages of floats may be 2 ulp off, sums not at all", "[bench]") {
  const float want = 0.1f, near = 0.1f * (1 + 1.5e-7f), far = 0.1f * (1 + 1e-6f);
  const auto same = [&](ReduceOp op, float got) {
    return same_element({DType::kF32, op, 3}, reinterpret_cast<const std::byte*>(&got),
                        reinterpret_cast<const std::byte*>(&want));
  };
  CHECK(same(ReduceOp::kAvg, near));
  CHECK_FALSE(same(ReduceOp::kAvg, far));
  CHECK_FALSE(same(ReduceOp::kAvg, -want));
  CHECK(same(ReduceOp::kSum, want));
  CHECK_FALSE(same(ReduceOp::kSum, near));
}

TEST_CASE("with a codec an element may lose twice its error, and no more", "[bench]") {
  constexpr double kError = 0x1p-8;
  const float want = 100;
  const auto same = [&](ReduceOp op, double lost) {
    const auto got = float(want + lost);
    return same_element({DType::kF32, op, 4, kError}, reinterpret_cast<const std::byte*>(&got),
                        reinterpret_cast<const std::byte*>(&want));
  };
  const double sum_loss = 2 * kError * (1 << 11);  // the largest sum of magnitudes is 2^11
  CHECK(same(ReduceOp::kSum, -sum_loss));
  CHECK_FALSE(same(ReduceOp::kSum, 1.01 * sum_loss));
  CHECK(same(ReduceOp::kAvg, sum_loss / 4));
  CHECK_FALSE(same(ReduceOp::kAvg, -1.01 * sum_loss / 4));
}

TEST_CASE("with a codec half precision holds all sums", "[bench]") {
  const Pattern pattern{DType::kF32, ReduceOp::kSum, 3, 0x1p-8};
  const Bytes sums = pattern_reduced(pattern);
  for (size_t i = 0; i < kPeriod; ++i) {
    float sum = 0;
    std::memcpy(&sum, sums.data() + i * sizeof sum, sizeof sum);
    REQUIRE(std::abs(sum) <= 2048);
  }
}

TEST_CASE("ranks have different data", "[bench]") {
  const Pattern pattern{DType::kF32, ReduceOp::kSum, 4};
  CHECK(pattern_input(pattern, 0) != pattern_input(pattern, 1));
  CHECK(pattern_input(pattern, 0).size() == kPeriod * 4);
}

TEST_CASE("elements are written as numbers of their type", "[bench]") {
  const int8_t small = -3;
  const BFloat16 half(0.25f);
  CHECK(element_text(DType::kI8, reinterpret_cast<const std::byte*>(&small)) == "-3");
  CHECK(element_text(DType::kBF16, reinterpret_cast<const std::byte*>(&half)) == "0.25");
}

}  // namespace
}  // namespace gxp
