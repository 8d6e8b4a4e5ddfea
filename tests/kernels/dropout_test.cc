// Dropout: each element by its own number, at the rate asked for, and right on average.
#include "kernels/math/dropout.h"

#include <cmath>

#include "tests/kernels/halves.h"

namespace gxp {
namespace {

constexpr uint64_t kDropoutKey = 0x5eed;

// Element by element.
Floats dropped_by_element(const Floats& x, const Dropout& dropout) {
  Floats kept(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t element = dropout.bits.first + i;
    const uint32_t random = random_word(uint32_t(element % kRandomBlock),
                                        random_block(dropout.bits.key, element / kRandomBlock));
    const bool drops = double(random) < dropout.rate * std::ldexp(1.0, 32);
    kept[i] = drops ? 0 : x[i] * float(1 / (1 - dropout.rate));
  }
  return kept;
}

TEST_CASE("what is dropped does not depend on backend, type, threads or cuts", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const DType dtype = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const size_t count = GENERATE(0, 1, 1025, 5003);
  const size_t first = GENERATE(0, 48, 0xfffffc00u + 3);
  CAPTURE(kind.name, dtype, count, first);
  TestBackend ops(kind);
  HalfArray x(random_floats(count, 1), dtype);
  const HalfArray result(dropped_by_element(x.floats(), {0.1, {kDropoutKey, first}}), dtype);
  HalfArray out(Floats(count), dtype), cut = x;
  ops->drop_out(out.tensor({count}), x.tensor({count}), {0.1, {kDropoutKey, first}});
  CHECK(out.floats() == result.floats());
  const size_t head = count / 3;
  for (const auto& [begin, end] : {std::pair(head, count), std::pair(size_t{0}, head)}) {
    const Tensor part = cut.tensor({count}).rows(begin, end - begin);
    ops->drop_out(part, part, {0.1, {kDropoutKey, first + begin}});
  }
  CHECK(cut.floats() == result.floats());
}

TEST_CASE("the share that is dropped is the rate; 0 drops nothing", "[kernels]") {
  constexpr size_t kCount = 1 << 18;
  const double rate = GENERATE(0.0, 0.05, 0.5, 0.9);
  CAPTURE(rate);
  TestBackend ops(backend_kinds().back());
  const Floats x(kCount, 1.0f);
  for (const uint64_t key : {1, 2, 3}) {
    Floats out(kCount);
    ops->drop_out(tensor_of(out, {kCount}), tensor_of(x, {kCount}), {rate, {key, 0}});
    const auto dropped = double(std::ranges::count(out, 0.0f)) / double(kCount);
    CHECK(std::abs(dropped - rate) <= 5 * std::sqrt(rate * (1 - rate) / double(kCount)));
    for (const float value : out)
      if (value != 0 && value != float(1 / (1 - rate))) FAIL("kept as " << value);
  }
}

}  // namespace
}  // namespace gxp
