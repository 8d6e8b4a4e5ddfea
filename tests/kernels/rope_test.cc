#include <complex>

#include "tests/kernels/backends.h"
#include "tests/kernels/rotary.h"

namespace gxp {
namespace {

using oracle::Values;

// Heads in rows of `columns`.
struct RopeCase {
  size_t batch, positions, columns;
  HeadColumns heads;
  Rotary rotary;
  [[nodiscard]] Shape shape() const { return {batch, positions, columns}; }
};

// Of each head, channels i and i + pairs as one complex number, times factor * e^(i angle).
Values turned(const RopeCase& c, const Floats& x, double direction, size_t position = 0) {
  Values out = oracle::to_values(x);
  const size_t pairs = c.rotary.frequencies.size();
  for (size_t row = 0; row < c.batch * c.positions; ++row) {
    for (size_t head = 0; head < c.heads.count; ++head) {
      double* const first = &out[row * c.columns + c.heads.first + head * c.heads.stride];
      for (size_t i = 0; i < pairs; ++i) {
        const double angle = double(position + row % c.positions) * c.rotary.frequencies[i];
        const auto z = std::complex<double>(first[i], first[i + pairs]) *
                       std::polar(c.rotary.factor, direction * angle);
        first[i] = z.real();
        first[i + pairs] = z.imag();
      }
    }
  }
  return out;
}

const std::vector<RopeCase> kRopeCases = {
    {1, 1, 2, side_by_side(1, 2), rotary_of(2, 1e4)},
    {2, 7, 36, side_by_side(3, 12), rotary_of(12, 1e4)},
    {3, 100, 128, side_by_side(2, 64), rotary_of(64, 5e5)},
    {2, 9, 48, side_by_side(3, 16), rotary_of(4, 1e4)},   // a quarter of each head
    {2, 9, 96, {0, 2, 16, 48}, rotary_of(8, 1e4, 1.3)},   // queries of [q k v] by heads
    {2, 9, 96, {16, 2, 16, 48}, rotary_of(16, 1e4)},      // their keys
    {1, 9, 30, {10, 1, 10, 10}, rotary_of(6, 1e4, 0.5)},  // keys behind two queries
    {1, 9, 24, side_by_side(2, 12), {{1.0, 0.25, 3.0, 0.0, 0.7}, 1.1}},  // any frequencies
};

TEST_CASE("rope turns each pair of channels by its position's angle, and backward undoes it",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  TestBackend ops(kind);
  for (const RopeCase& c : kRopeCases) {
    CAPTURE(kind.name, c.positions, c.columns, c.heads.first, c.heads.stride);
    const Floats before = random_floats(c.shape().count(), 1);
    Floats x = before, dx = before;
    ops->rope_forward(tensor_of(x, c.shape()), c.heads, c.rotary);
    ops->rope_backward(tensor_of(dx, c.shape()), c.heads, c.rotary);
    CHECK(distance_in_eps(x, turned(c, before, 1), 1) < 4);
    // The map is a rotation, whose transpose, which a gradient goes through, is its inverse.
    CHECK(distance_in_eps(dx, turned(c, before, -1), 1) < 4);
  }
}

TEST_CASE("rope begins at any position", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const size_t position = GENERATE(1, 40, 3);  // one after the other, on the same backend
  TestBackend ops(kind);
  for (const RopeCase& c : kRopeCases) {
    CAPTURE(kind.name, c.positions, c.columns, position);
    const Floats before = random_floats(c.shape().count(), 1);
    Floats x = before;
    ops->rotate(tensor_of(x, c.shape()), c.heads, c.rotary, 1.0f, {.first = position});
    CHECK(distance_in_eps(x, turned(c, before, 1, position), 1) < 4);
  }
}

TEST_CASE("rope leaves the channels that it does not turn as they are", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  const RopeCase& c = kRopeCases[4];
  const Floats before = random_floats(c.shape().count(), 1);
  Floats x = before;
  ops->rope_forward(tensor_of(x, c.shape()), c.heads, c.rotary);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool turns = i % 48 < 8;
    if (!turns) CHECK(x[i] == before[i]);
  }
}

TEST_CASE("rope follows a change of its length and of its frequencies, also back", "[kernels]") {
  TestBackend ops(backend_kinds().back());
  const auto heads_of_8 = [](size_t positions, double theta) {
    return RopeCase{1, positions, 8, side_by_side(1, 8), rotary_of(8, theta)};
  };
  for (const RopeCase& c :
       {heads_of_8(5, 1e4), heads_of_8(9, 1e4), heads_of_8(3, 5e5), heads_of_8(7, 1e4),
        heads_of_8(11, 5e5), RopeCase{1, 3, 8, side_by_side(2, 4), rotary_of(4, 1e4)},
        heads_of_8(9, 1e4)}) {
    const Floats before = random_floats(c.shape().count(), 2);
    Floats x = before;
    ops->rope_forward(tensor_of(x, c.shape()), c.heads, c.rotary);
    CHECK(distance_in_eps(x, turned(c, before, 1), 1) < 4);
  }
}

}  // namespace
}  // namespace gxp
