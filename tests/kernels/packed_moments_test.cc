// AdamW with moments of bf16 or of 8-bit codes: the update of f32 moments, between unpacking and
// packing.
#include <algorithm>
#include <cmath>

#include "kernels/math/dynamic_map.h"
#include "lib/base/range.h"
#include "lib/base/state_block.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

// bitsandbytes' create_dynamic_map(), by its formula.
std::vector<double> map_by_formula(bool has_sign) {
  std::vector<double> values = {0, 1};
  for (int i = 0; i < 7; ++i) {
    const int borders = has_sign ? (1 << i) + 1 : (1 << (i + 1)) + 1;
    const auto border = [&](int k) { return 0.1 + 0.9 * k / (borders - 1); };
    for (int k = 0; k + 1 < borders; ++k) {
      const double value = std::pow(10.0, i - 6) * (border(k) + border(k + 1)) / 2;
      values.push_back(value);
      if (has_sign) values.push_back(-value);
    }
  }
  std::ranges::sort(values);
  return values;
}

TEST_CASE("the dynamic maps are bitsandbytes', and an element gets the code nearest to it",
          "[kernels]") {
  const bool has_sign = GENERATE(true, false);
  const DynamicMap map = make_dynamic_map(has_sign);
  const std::vector<double> expected = map_by_formula(has_sign);
  REQUIRE(expected.size() == 256);
  CHECK(map.values[map.zero] == 0);
  for (size_t code = 0; code < 256; ++code)
    REQUIRE(map.values[code] == Approx(expected[code]).epsilon(1e-6));
  Floats some = random_floats(4000, 1);
  for (size_t code = 0; code < 255; ++code) {
    some.push_back(map.values[code]);
    const float border = (map.values[code] + map.values[code + 1]) / 2;
    some.insert(some.end(), {border * 0.99999f, border * 1.00001f});
  }
  for (size_t i = 0; i < 4000; ++i) some[i] *= std::pow(10.0f, -float(i % 9));
  some.insert(some.end(), {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, 1e-7f, 0.5f});
  for (float x : some) {
    if (!has_sign) x = std::abs(x);
    const auto nearest = std::ranges::min_element(
        map.values, {}, [&](float value) { return std::abs(double(value) - double(x)); });
    CAPTURE(x);
    REQUIRE(int(nearest_code(x, map)) == int(nearest - std::begin(map.values)));
  }
}

TEST_CASE("a second moment is never rounded to zero", "[kernels]") {
  const DynamicMap map = make_dynamic_map(false);
  CHECK(second_moment_code(1e-20f, 1.0f, map) == 1);
  CHECK(second_moment_code(0.0f, 1.0f, map) == 0);
  CHECK(second_moment_code(0.0f, inverse_scale(0.0f), map) == 0);
}

using Codes = std::vector<uint8_t>;

// Moments of 8-bit codes of one tensor.
struct Coded {
  explicit Coded(size_t count) : codes(count), scales((count + kStateBlock - 1) / kStateBlock) {}
  [[nodiscard]] Floats decoded(const DynamicMap& map) const {
    Floats values(codes.size());
    for (size_t i = 0; i < codes.size(); ++i)
      values[i] = map.values[codes[i]] * scales[i / kStateBlock];
    return values;
  }
  template <class CodeOf>
  void encode(const Floats& values, const CodeOf& code_of) {
    for (size_t b = 0; b < scales.size(); ++b) {
      const size_t end = std::min(values.size(), (b + 1) * kStateBlock);
      scales[b] = 0;
      for (size_t i = b * kStateBlock; i < end; ++i)
        scales[b] = std::max(scales[b], std::abs(values[i]));
      for (size_t i = b * kStateBlock; i < end; ++i)
        codes[i] = code_of(values[i], inverse_scale(scales[b]));
    }
  }
  friend bool operator==(const Coded&, const Coded&) = default;

  Codes codes;
  Floats scales;
};

AdamWStep settings_of(int step) { return {1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.7}; }

// Elements [begin, begin + count), from a whole block on.
AdamWRange coded_range(Floats& weights, Coded& first, Coded& second, const ConstTensor& gradients,
                       const Range& part, int step) {
  const size_t block = part.begin / kStateBlock;
  const size_t blocks = (part.count + kStateBlock - 1) / kStateBlock;
  const auto codes = [&](Coded& moment) {
    return Tensor(memory_of(moment.codes).slice(part.begin, part.count), DType::kU8,
                  Shape{part.count});
  };
  const auto scales = [&](Coded& moment) {
    return tensor_of(moment.scales, {moment.scales.size()}).rows(block, blocks);
  };
  return {tensor_of(weights, {weights.size()}).rows(part.begin, part.count),
          codes(first),
          codes(second),
          gradients.rows(part.begin, part.count),
          settings_of(step),
          scales(first),
          scales(second)};
}

TEST_CASE("8-bit moments are decoded, updated as f32 ones and encoded, however they are cut",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(1, 255, 256, 257, 5003, 40'000);
  const DType type = GENERATE(DType::kF32, DType::kBF16);
  CAPTURE(kind.name, count, to_string(type));
  TestBackend ops(kind);
  Floats weights = random_floats(count, 1), same = weights, cut = weights;
  Coded first(count), second(count), expected_first(count), expected_second(count);
  Coded cut_first(count), cut_second(count);
  const DynamicMap with_sign = make_dynamic_map(true), without = make_dynamic_map(false);
  for (int step = 1; step <= 3; ++step) {
    Floats values = random_floats(count, unsigned(10 + step), 0.1f);
    for (size_t i = 0; i < count; i += 3) values[i] *= 1e-4f;
    if (step == 2) std::fill(values.begin(), values.begin() + long(count / 2), 0.0f);
    HalfArray halves(values, DType::kBF16);
    const ConstTensor gradients =
        type == DType::kF32 ? tensor_of(std::as_const(values), {count}) : halves.tensor({count});
    Floats m = expected_first.decoded(with_sign), v = expected_second.decoded(without);
    ops->adamw(tensor_of(same, {count}), tensor_of(m, {count}), tensor_of(v, {count}), gradients,
               settings_of(step));
    expected_first.encode(
        m, [&](float x, float inverse) { return nearest_code(x * inverse, with_sign); });
    expected_second.encode(
        v, [&](float x, float inverse) { return second_moment_code(x, inverse, without); });
    const AdamWRange whole = coded_range(weights, first, second, gradients, {0, count}, step);
    ops->adamw({&whole, 1});
    std::vector<AdamWRange> ranges;
    const size_t border = std::min(count, kStateBlock * (count / kStateBlock / 3));
    for (const Range& part : {Range{border, count - border}, Range{0, border}})
      if (part.count > 0)
        ranges.push_back(coded_range(cut, cut_first, cut_second, gradients, part, step));
    ops->adamw(ranges);
  }
  CHECK(weights == same);
  CHECK(first == expected_first);
  CHECK(second == expected_second);
  CHECK(cut == weights);
  CHECK(cut_first == first);
  CHECK(cut_second == second);
}

TEST_CASE("bf16 moments are updated as f32 ones and rounded stochastically", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(1, 1027, 5003);
  const size_t begin = GENERATE(0, 48);  // of the range, in its tensor
  CAPTURE(kind.name, count, begin);
  TestBackend ops(kind);
  Floats weights = random_floats(count, 1), same = weights;
  HalfArray first(Floats(count), DType::kBF16), second = first, m_rounded = first,
                                                v_rounded = first;
  for (int step = 1; step <= 3; ++step) {
    const Floats gradients = random_floats(count, unsigned(10 + step), 0.1f);
    const RandomBits first_bits{uint64_t(step), begin}, second_bits{uint64_t(step) + 9, begin};
    Floats m = m_rounded.floats(), v = v_rounded.floats();
    ops->adamw(tensor_of(same, {count}), tensor_of(m, {count}), tensor_of(v, {count}),
               tensor_of(gradients, {count}), settings_of(step));
    ops->round_stochastically(m_rounded.tensor({count}), tensor_of(m, {count}), first_bits);
    ops->round_stochastically(v_rounded.tensor({count}), tensor_of(v, {count}), second_bits);
    AdamWRange range{tensor_of(weights, {count}), first.tensor({count}), second.tensor({count}),
                     tensor_of(gradients, {count}), settings_of(step)};
    range.first_bits = first_bits;
    range.second_bits = second_bits;
    ops->adamw({&range, 1});
  }
  CHECK(weights == same);
  CHECK(first.floats() == m_rounded.floats());
  CHECK(second.floats() == v_rounded.floats());
}

}  // namespace
}  // namespace gxp
