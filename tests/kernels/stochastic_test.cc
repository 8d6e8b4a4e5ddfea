// Stochastic rounding: right on average, and the same bits whoever rounds what with what.
#include "kernels/math/stochastic.h"

#include <bit>
#include <cmath>

#include "tests/kernels/halves.h"

namespace gxp {
namespace {

constexpr uint64_t kKey = 0x5eed;

// Element by element.
Floats expected(const Floats& x, const RandomBits& bits) {
  Floats rounded(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t element = bits.first + i;
    const uint32_t random = random_word(uint32_t(element % kRandomBlock),
                                        random_block(bits.key, element / kRandomBlock));
    const uint32_t half = round_to_bf16(std::bit_cast<uint32_t>(x[i]), random);
    rounded[i] = std::bit_cast<float>(half << 16);
  }
  return rounded;
}

TEST_CASE("an element's random bits do not depend on backend, threads or cuts", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(0, 1, 1025, 5003);
  const size_t first = GENERATE(0, 48, 0xfffffc00u + 3);
  CAPTURE(kind.name, count, first);
  TestBackend ops(kind);
  const Floats x = random_floats(count, 1);
  HalfArray out(Floats(count), DType::kBF16), cut = out;
  ops->round_stochastically(out.tensor({count}), tensor_of(x, {count}), {kKey, first});
  CHECK(out.floats() == expected(x, {kKey, first}));
  const size_t head = count / 3;
  const ConstTensor all = tensor_of(x, {count});
  for (const auto& [begin, end] : {std::pair(head, count), std::pair(size_t{0}, head)})
    ops->round_stochastically(cut.tensor({count}).rows(begin, end - begin),
                              all.rows(begin, end - begin), {kKey, first + begin});
  CHECK(cut.floats() == out.floats());
}

TEST_CASE("what is rounded is right on average, to its neighbours, and exact where it can be",
          "[kernels]") {
  constexpr size_t kCount = 1 << 16;
  const float value = GENERATE(1.0f, 1.001f, -1.0001f, 3.14159f, 1e-30f, -6.1e37f);
  CAPTURE(value);
  TestBackend ops(backend_kinds().back());
  const Floats x(kCount, value);
  HalfArray out(x, DType::kBF16);
  const auto down = float(std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000u));
  const double step = std::ldexp(1.0, std::ilogb(value) - 7);  // between neighbours
  const double share = std::abs(double(value) - down) / step;  // that go away from zero
  for (const uint64_t key : {1, 2, 3}) {
    ops->round_stochastically(out.tensor({kCount}), tensor_of(x, {kCount}), {key, 0});
    double away = 0;
    for (const float found : out.floats()) {
      const double distance = std::abs(double(found) - down);
      REQUIRE((distance == 0 || distance == step));
      away += distance / step;
    }
    const double deviation = std::sqrt(share * (1 - share) / kCount);
    CHECK(std::abs(away / kCount - share) <= 4 * deviation + 0x1p-16);
  }
}

TEST_CASE("neighbours, blocks and keys do not round alike", "[kernels]") {
  constexpr size_t kCount = 1 << 16;
  TestBackend ops(backend_kinds().back());
  const Floats x(kCount, 1.0f + 0x1p-8f);  // half way
  const auto rounded = [&](uint64_t key) {
    HalfArray out(x, DType::kBF16);
    ops->round_stochastically(out.tensor({kCount}), tensor_of(x, {kCount}), {key, 0});
    return out.floats();
  };
  const Floats one = rounded(1);
  const auto agreement = [&](const Floats& other, size_t distance) {
    size_t same = 0;
    for (size_t i = 0; i + distance < kCount; ++i) same += one[i] == other[i + distance];
    return double(same) / double(kCount - distance);
  };
  const double bound = 4 * 0.5 / std::sqrt(double(kCount));
  for (const size_t distance : {1, 2, 16, 64, 1023, 1024})
    CHECK(std::abs(agreement(one, distance) - 0.5) < bound);
  CHECK(std::abs(agreement(rounded(2), 0) - 0.5) < bound);
}

TEST_CASE("infinities stay, and a NaN stays one", "[kernels]") {
  for (const BackendKind& kind : device_kinds()) {
    TestBackend ops(kind);
    const Floats x = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f};
    HalfArray out(x, DType::kBF16);
    ops->round_stochastically(out.tensor({5}), tensor_of(x, {5}), {kKey, 0});
    const Floats found = out.floats();
    CHECK(found[0] == INFINITY);
    CHECK(found[1] == -INFINITY);
    CHECK(std::isnan(found[2]));
    CHECK((found[3] == 0 && !std::signbit(found[3])));
    CHECK((found[4] == 0 && std::signbit(found[4])));
  }
}

}  // namespace
}  // namespace gxp
