#include "kernels/reduce_op.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/kernels.h"
#include "tests/kernels/backends.h"

namespace gxp {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kAvg};

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// One element folded as reduce_op.h says.
template <class T>
T fold_one(T a, T b, ReduceOp op) {
  if constexpr (kIsHalf<T>) {
    return T(fold_one(float(a), float(b), op));
  } else {
    if (op == ReduceOp::kMin) return a != a ? a : a < b ? a : b;
    if (op == ReduceOp::kMax) return a != a ? a : a > b ? a : b;
    if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<uint64_t>(a);
      const auto y = static_cast<uint64_t>(b);
      return static_cast<T>(op == ReduceOp::kProd ? x * y : x + y);
    } else {
      return op == ReduceOp::kProd ? a * b : a + b;
    }
  }
}

// Equal bits, or both NaN: which NaN comes out of two is the compiler's choice.
template <class T>
bool same(T a, T b) {
  if constexpr (kIsHalf<T>) {
    return a.bits == b.bits || (std::isnan(float(a)) && std::isnan(float(b)));
  } else {
    return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
  }
}

template <class T>
std::vector<T> random_elements(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> x(count);
  for (T& value : x) {
    if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(uint64_t{random()} << 32 | random());
    else
      value = T(float(int(random() % 2001) - 1000) / 64.0f);
  }
  return x;
}

template <class T>
void check_folds(const FoldKernels& kernels, DType dtype) {
  for (const size_t count : {0, 1, 15, 64, 1003}) {
    for (const ReduceOp op : kOps) {
      CAPTURE(to_string(dtype), to_string(op), count);
      const auto before = random_elements<T>(count, 1);
      const auto from = random_elements<T>(count, 2);
      auto into = before;
      into.push_back(T{});  // a canary behind the end
      kernels.fold(memory_of(into).data, memory_of(from).data, count, dtype, op);
      bool all = same(into[count], T{});
      for (size_t i = 0; i < count; ++i) all &= same(into[i], fold_one(before[i], from[i], op));
      CHECK(all);
    }
  }
}

TEST_CASE("folds are the scalar folds for every type, operation and count", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  CAPTURE(to_string(isa));
  const FoldKernels& kernels = cpu_kernels(isa).fold;
  check_folds<double>(kernels, DType::kF64);
  check_folds<float>(kernels, DType::kF32);
  check_folds<Float16>(kernels, DType::kF16);
  check_folds<BFloat16>(kernels, DType::kBF16);
  check_folds<int64_t>(kernels, DType::kI64);
  check_folds<int32_t>(kernels, DType::kI32);
  check_folds<int8_t>(kernels, DType::kI8);
  check_folds<uint8_t>(kernels, DType::kU8);
}

// All 65,536 bit patterns, mixed, and moved on by `shift`.
template <class T>
std::vector<T> all_patterns(size_t shift) {
  std::vector<T> x(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i * 5 + shift);
  return x;
}

template <class T>
void check_conversions(const FoldKernels& kernels, DType dtype) {
  // Minus zero added to a pattern gives the pattern: decoding and encoding alone.
  const auto patterns = all_patterns<T>(0);
  const std::vector<T> zeros(patterns.size(), T(-0.0f));
  auto into = patterns;
  kernels.fold(memory_of(into).data, memory_of(zeros).data, into.size(), dtype, ReduceOp::kSum);
  size_t wrong = 0;
  for (size_t i = 0; i < into.size(); ++i)
    wrong += into[i].bits != T(float(patterns[i]) + -0.0f).bits;
  CHECK(wrong == 0);
}

TEST_CASE("half types convert as lib/base/dtype.h does, for all patterns", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  CAPTURE(to_string(isa));
  check_conversions<Float16>(cpu_kernels(isa).fold, DType::kF16);
  check_conversions<BFloat16>(cpu_kernels(isa).fold, DType::kBF16);
}

TEST_CASE("half sums and products round as the scalar ones, subnormals and overflow included",
          "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const size_t shift = GENERATE(1, 777, 32768, 40000);
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kProd);
  CAPTURE(to_string(isa), shift, to_string(op));
  const auto check = [&](auto into, const auto& from, DType dtype) {
    const auto before = into;
    cpu_kernels(isa).fold.fold(memory_of(into).data, memory_of(from).data, into.size(), dtype, op);
    size_t wrong = 0;
    for (size_t i = 0; i < into.size(); ++i)
      wrong += !same(into[i], fold_one(before[i], from[i], op));
    CHECK(wrong == 0);
  };
  check(all_patterns<Float16>(0), all_patterns<Float16>(shift), DType::kF16);
  check(all_patterns<BFloat16>(0), all_patterns<BFloat16>(shift), DType::kBF16);
}

TEST_CASE("min and max return NaN if either side is NaN", "[kernels]") {
  const auto op = GENERATE(ReduceOp::kMin, ReduceOp::kMax);
  Floats into = {std::nanf(""), 1.0f, 2.0f};
  const Floats from = {1.0f, std::nanf(""), 3.0f};
  fold(memory_of(into), memory_of(from), DType::kF32, op);
  CHECK(std::isnan(into[0]));
  CHECK(std::isnan(into[1]));
  CHECK(into[2] == (op == ReduceOp::kMin ? 2.0f : 3.0f));
}

TEST_CASE("scale multiplies floats and divides integers towards zero", "[kernels]") {
  Floats f32 = {3.0f, -6.0f, 0.75f};
  std::vector<double> f64 = {3.0, 1e300};
  std::vector<int32_t> i32 = {7, -7, 6};
  std::vector<BFloat16> bf16 = {BFloat16(3.0f)};
  scale(memory_of(f32), DType::kF32, 0.5);
  scale(memory_of(f64), DType::kF64, 0.5);
  scale(memory_of(i32), DType::kI32, 1.0 / 3);
  scale(memory_of(bf16), DType::kBF16, 0.5);
  CHECK(f32 == Floats{1.5f, -3.0f, 0.375f});
  CHECK(f64 == std::vector<double>{1.5, 5e299});
  CHECK(i32 == std::vector<int32_t>{2, -2, 2});
  CHECK(float(bf16[0]) == 1.5f);
}

TEST_CASE("every operation's name parses to the operation", "[kernels]") {
  for (const ReduceOp op : kOps) CHECK(parse_reduce_op(to_string(op)) == op);
  CHECK_FALSE(parse_reduce_op("median"));
}

TEST_CASE("buffers of unequal size are not folded", "[kernels]") {
  Floats into(3);
  const Floats from(4);
  CHECK_THROWS_AS(fold(memory_of(into), memory_of(from), DType::kF32, ReduceOp::kSum), Error);
}

}  // namespace
}  // namespace gxp
