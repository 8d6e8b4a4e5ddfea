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

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class T>
T fold_floats(T a, T b, ReduceOp op) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  const bool less = a < b || (a == b && std::signbit(a));
  if (op == ReduceOp::kMin) return less ? a : b;
  if (op == ReduceOp::kMax) return less ? b : a;
  const T result = op == ReduceOp::kProd ? a * b : a + b;
  return std::isnan(result) ? std::numeric_limits<T>::quiet_NaN() : result;
}

template <class T>
T fold_integers(T a, T b, ReduceOp op) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case ReduceOp::kProd:
      return static_cast<T>(x * y);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBitAnd:
      return static_cast<T>(x & y);
    case ReduceOp::kBitOr:
      return static_cast<T>(x | y);
    case ReduceOp::kBitXor:
      return static_cast<T>(x ^ y);
    case ReduceOp::kLogicalAnd:
      return a && b;
    case ReduceOp::kLogicalOr:
      return a || b;
    case ReduceOp::kLogicalXor:
      return !a != !b;
    default:
      return static_cast<T>(x + y);
  }
}

// One element folded as reduce_op.h says.
template <class T>
T fold_one(T a, T b, ReduceOp op) {
  if constexpr (kIsHalf<T>) {
    return T(fold_floats(float(a), float(b), op));
  } else if constexpr (std::is_floating_point_v<T>) {
    return fold_floats(a, b, op);
  } else {
    return fold_integers(a, b, op);
  }
}

template <class T>
void set_low_bytes(T& value, uint64_t bits, size_t count) {
  std::memcpy(static_cast<void*>(&value), &bits, count);
}

// Any bits, and at every other place one that is special: zero, infinity, NaN with a payload and a
// sign, quiet or not, the smallest and the largest numbers.
template <class T>
std::vector<T> elements(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  constexpr double kSpecial[] = {0.0, -0.0, 1.0, -3.0, INFINITY, -INFINITY, NAN, -NAN};
  std::vector<T> x(count);
  for (T& value : x) {
    const uint64_t bits = random();
    set_low_bytes(value, bits, sizeof value);
    const auto special = kSpecial[random() % 8];
    if (random() % 2 == 0) continue;
    if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(random() % 3 - 1);
    else
      value = T(float(special));
    if (std::isnan(special)) set_low_bytes(value, bits, sizeof value / 2);  // the payload
  }
  return x;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || !std::memcmp(a.data(), b.data(), sizeof(T) * a.size()));
}

// body(T(), dtype) for each type.
template <class Body>
void for_each_type(Body body) {
  body(double(), DType::kF64);
  body(float(), DType::kF32);
  body(Float16(), DType::kF16);
  body(BFloat16(), DType::kBF16);
  body(int64_t(), DType::kI64);
  body(int32_t(), DType::kI32);
  body(int8_t(), DType::kI8);
  body(uint8_t(), DType::kU8);
}

// Around an element, each width of vector, each block of 8 vectors; and several blocks.
std::vector<size_t> counts_of(size_t element_bytes) {
  std::vector<size_t> counts = {0, 1, 2, 3, 5000 / element_bytes};
  for (const size_t bytes : {16, 32, 64, 256, 512}) {
    const size_t count = bytes / element_bytes;
    counts.insert(counts.end(), {count - 1, count, count + 1});
  }
  return counts;
}

TEST_CASE("a fold of any type, operation and count is the scalar fold, from either side",
          "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  for_each_type([&]<class T>(T, DType dtype) {
    for (const ReduceOp op : reduce_ops()) {
      if (!supports(op, dtype)) continue;
      const FoldKernel fold_pair = cpu_kernels(isa).fold.pair(dtype, op);
      for (const size_t count : counts_of(sizeof(T))) {
        CAPTURE(to_string(isa), to_string(dtype), to_string(op), count);
        const auto a = elements<T>(count, 1);
        const auto b = elements<T>(count, 2);
        std::vector<T> want(count + 1);  // and an element behind the end, which stays
        for (size_t i = 0; i < count; ++i) want[i] = fold_one(a[i], b[i], op);
        std::vector<T> ab(count + 1), ba(count + 1);
        std::byte* const targets[] = {memory_of(ab).data};
        std::byte* const turned[] = {memory_of(ba).data};
        const size_t bytes = count * sizeof(T);
        const std::byte* const operands[] = {memory_of(a).data, memory_of(b).data};
        const std::byte* const swapped[] = {operands[1], operands[0]};
        fold_pair({targets, 0, bytes, false}, operands);
        fold_pair({turned, 0, bytes, true}, swapped);
        CHECK(same_bits(ab, want));
        CHECK(same_bits(ba, want));
      }
    }
  });
}

TEST_CASE("a fold of four is the fold of two folds, stored to every target", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const FoldKernels& kernels = cpu_kernels(isa).fold;
  for_each_type([&]<class T>(T, DType dtype) {
    const FoldKernel fold_quad = kernels.quad(dtype, ReduceOp::kSum);
    if (!fold_quad) return;
    for (const size_t count : counts_of(sizeof(T))) {
      CAPTURE(to_string(isa), to_string(dtype), count);
      std::vector<std::vector<T>> q;
      for (unsigned i = 0; i < 4; ++i) q.push_back(elements<T>(count, i));
      std::vector<T> want(count);
      const auto sum = [](T a, T b) { return fold_one(a, b, ReduceOp::kSum); };
      for (size_t i = 0; i < count; ++i)
        want[i] = sum(sum(q[0][i], q[1][i]), sum(q[2][i], q[3][i]));
      std::vector<T> other(count + 1);
      std::byte* const targets[] = {memory_of(q[2]).data, memory_of(other).data};
      const std::byte* const operands[] = {memory_of(q[0]).data, memory_of(q[1]).data,
                                           memory_of(q[2]).data, memory_of(q[3]).data};
      fold_quad({targets, 0, count * sizeof(T), true}, operands);
      CHECK(same_bits(q[2], want));
      want.push_back(T{});
      CHECK(same_bits(other, want));
    }
  });
}

// All 65,536 bit patterns, mixed, and moved on by `shift`.
template <class T>
std::vector<T> all_patterns(size_t shift) {
  std::vector<T> x(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i * 5 + shift);
  return x;
}

TEST_CASE("half types fold as lib/base/dtype.h converts, for all patterns", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const size_t shift = GENERATE(0, 1, 777, 32768, 40000);
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax);
  CAPTURE(to_string(isa), shift, to_string(op));
  const auto check = [&](auto a, const auto& b, DType dtype) {
    auto want = a;
    for (size_t i = 0; i < a.size(); ++i) want[i] = fold_one(a[i], b[i], op);
    std::byte* const target[] = {memory_of(a).data};
    const std::byte* const operands[] = {target[0], memory_of(b).data};
    cpu_kernels(isa).fold.pair(dtype, op)({target, 0, 2 * a.size()}, operands);
    CHECK(same_bits(a, want));
  };
  check(all_patterns<Float16>(0), all_patterns<Float16>(shift), DType::kF16);
  check(all_patterns<BFloat16>(0), all_patterns<BFloat16>(shift), DType::kBF16);
}

TEST_CASE("min takes -0 before +0, max after it, and NaN before all", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const Floats a = {0.0f, -0.0f, NAN, 1.0f, -NAN, INFINITY};
  const Floats b = {-0.0f, 0.0f, 1.0f, NAN, NAN, -INFINITY};
  const auto folded = [&](ReduceOp op) {
    Floats into(a.size());
    std::byte* const target[] = {memory_of(into).data};
    const std::byte* const operands[] = {memory_of(a).data, memory_of(b).data};
    cpu_kernels(isa).fold.pair(DType::kF32, op)({target, 0, memory_of(into).bytes}, operands);
    return into;
  };
  const float nan = std::bit_cast<float>(0x7fc00000u);
  CHECK(same_bits(folded(ReduceOp::kMin), {-0.0f, -0.0f, nan, nan, nan, -INFINITY}));
  CHECK(same_bits(folded(ReduceOp::kMax), {0.0f, 0.0f, nan, nan, nan, INFINITY}));
}

TEST_CASE("the result of a fold may take the place of either operand", "[kernels]") {
  const auto a = elements<int32_t>(1003, 1);
  const auto b = elements<int32_t>(1003, 2);
  auto want = a;
  for (size_t i = 0; i < a.size(); ++i) want[i] = fold_one(a[i], b[i], ReduceOp::kSum);
  auto first = a;
  auto second = b;
  fold(memory_of(first), memory_of(b), DType::kI32, ReduceOp::kSum);
  fold(memory_of(second), memory_of(a), memory_of(second), DType::kI32, ReduceOp::kSum);
  CHECK(same_bits(first, want));
  CHECK(same_bits(second, want));
}

// Neighbours first, one fold of whole buffers after the other.
template <class T>
std::vector<T> folded(std::vector<std::vector<T>> sources, DType dtype, ReduceOp op) {
  const size_t width = std::bit_floor(sources.size());
  const size_t pairs = sources.size() - width;
  const auto take = [&](size_t into, size_t from) {
    fold(memory_of(sources[into]), memory_of(sources[from]), dtype, op);
  };
  for (size_t i = 0; i < pairs; ++i) take(2 * i, 2 * i + 1);
  for (size_t i = 0; i < pairs; ++i) sources.erase(sources.begin() + long(i) + 1);
  for (size_t distance = 1; distance < width; distance *= 2) {
    for (size_t i = 0; i < width; i += 2 * distance) take(i, i + distance);
  }
  return sources[0];
}

template <class T>
void check_fold_all(size_t n, size_t count, DType dtype, ReduceOp op) {
  CAPTURE(n, count, to_string(dtype), to_string(op));
  std::vector<std::vector<T>> buffers;
  for (unsigned i = 0; i < n; ++i) buffers.push_back(elements<T>(count, i));
  const std::vector<T> want = folded(buffers, dtype, op);
  const std::vector<std::vector<T>> before = buffers;
  std::vector<T> other(count);
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets = {memory_of(other).data};
  for (size_t i = 0; i < n; ++i) {  // every third source is no target
    sources.push_back(memory_of(buffers[i]).data);
    if (i % 3 != 1) targets.push_back(memory_of(buffers[i]).data);
  }
  fold_all(targets, sources, count * sizeof(T), dtype, op);
  bool all = same_bits(other, want);
  for (size_t i = 0; i < n; ++i) all &= same_bits(buffers[i], i % 3 != 1 ? want : before[i]);
  CHECK(all);
}

TEST_CASE("fold_all gives every target the bits of the collectives' tree", "[kernels]") {
  const size_t n = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17);
  for_each_type([&]<class T>(T, DType dtype) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
      for (const size_t count : {0, 1, 63, 2048, 5001}) check_fold_all<T>(n, count, dtype, op);
    }
  });
}

TEST_CASE("fold_all has the same bits where it fetches ahead", "[kernels]") {
  const size_t n = GENERATE(2, 3, 4);
  check_fold_all<float>(n, (size_t{1} << 20) + 77, DType::kF32, ReduceOp::kSum);
}

TEST_CASE("scale multiplies floats and rounds once", "[kernels]") {
  Floats f32 = {3.0f, -6.0f, 0.75f};
  std::vector<double> f64 = {3.0, 1e300};
  std::vector<Float16> f16 = {Float16(3.0f), Float16(65504.0f)};
  std::vector<BFloat16> bf16 = {BFloat16(3.0f), BFloat16(-1.0f), BFloat16(0.0f)};
  scale(memory_of(f32), DType::kF32, 0.5);
  scale(memory_of(f64), DType::kF64, 0.5);
  scale(memory_of(f16), DType::kF16, 1.5);
  scale(memory_of(bf16), DType::kBF16, 1.0 / 3);
  CHECK(f32 == Floats{1.5f, -3.0f, 0.375f});
  CHECK(f64 == std::vector<double>{1.5, 5e299});
  CHECK(float(f16[0]) == 4.5f);
  CHECK(std::isinf(float(f16[1])));
  CHECK(bf16[0].bits == BFloat16(1.0f).bits);
  CHECK(bf16[1].bits == BFloat16(-1.0f / 3).bits);
  CHECK(bf16[2].bits == 0);
}

TEST_CASE("scale divides integers towards zero by the inverse of a factor below 1, else multiplies",
          "[kernels]") {
  struct Case {
    double factor;
    std::vector<int32_t> want;
  };
  const std::vector<int32_t> x = {7, -7, 1 << 30};
  const Case cases[] = {{1.0 / 3, {2, -2, (1 << 30) / 3}}, {0.5, {3, -3, 1 << 29}},
                        {1.0, {7, -7, 1 << 30}},           {2.0, {14, -14, INT32_MIN}},
                        {2.6, {21, -21, -(1 << 30)}},      {-1.0, {-7, 7, -(1 << 30)}},
                        {-0.5, {-3, 3, -(1 << 29)}},       {0.0, {0, 0, 0}}};
  for (const Case& c : cases) {
    CAPTURE(c.factor);
    auto scaled = x;
    scale(memory_of(scaled), DType::kI32, c.factor);
    CHECK(scaled == c.want);
  }
  std::vector<uint8_t> u8 = {255, 100};
  scale(memory_of(u8), DType::kU8, 3.0);
  CHECK(u8 == std::vector<uint8_t>{253, 44});
}

TEST_CASE("every operation's name parses to the operation", "[kernels]") {
  CHECK(reduce_ops().size() == 12);
  for (const ReduceOp op : reduce_ops()) CHECK(parse_reduce_op(to_string(op)) == op);
  CHECK(to_string(ReduceOp::kLogicalXor) == "lxor");
  CHECK_FALSE(parse_reduce_op("median"));
}

TEST_CASE("bitwise and logical operations are for integers only", "[kernels]") {
  for (const ReduceOp op : reduce_ops()) {
    CHECK(supports(op, DType::kU8));
    CHECK(supports(op, DType::kBF16).ok == (op < ReduceOp::kBitAnd));
  }
  CHECK_FALSE(supports(ReduceOp::kBitXor, DType::kF64).reason.empty());
  Floats x(3);
  CHECK_THROWS_AS(fold(memory_of(x), memory_of(x), DType::kF32, ReduceOp::kBitOr), Error);
}

TEST_CASE("buffers of unequal size are not folded", "[kernels]") {
  Floats into(3);
  const Floats from(4);
  CHECK_THROWS_AS(fold(memory_of(into), memory_of(from), DType::kF32, ReduceOp::kSum), Error);
}

}  // namespace
}  // namespace gxp
