#include <complex>

#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::Values;

constexpr double kTheta = 10000;

struct RopeSizes {
  size_t batch, positions, heads, head_size;
  [[nodiscard]] Shape shape() const { return {batch, positions, heads * head_size}; }
  [[nodiscard]] size_t count() const { return shape().count(); }
};

// Channels i and i + D / 2 as one complex number, times e^(i angle).
Values turned(const RopeSizes& s, const Floats& x, double theta, double direction) {
  Values out(x.size());
  const size_t pairs = s.head_size / 2;
  for (size_t at = 0; at < x.size(); at += s.head_size) {
    const size_t position = at / (s.heads * s.head_size) % s.positions;
    for (size_t i = 0; i < pairs; ++i) {
      const double angle =
          double(position) * std::pow(theta, -2.0 * double(i) / double(s.head_size));
      const auto z =
          std::complex<double>(x[at + i], x[at + i + pairs]) * std::polar(1.0, direction * angle);
      out[at + i] = z.real();
      out[at + i + pairs] = z.imag();
    }
  }
  return out;
}

TEST_CASE("rope turns each pair of channels by its position's angle, and backward undoes it",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const auto sizes =
      GENERATE(RopeSizes{1, 1, 1, 2}, RopeSizes{2, 7, 3, 12}, RopeSizes{3, 100, 2, 64});
  CAPTURE(kind.name, sizes.positions);
  TestBackend ops(kind);
  const Floats before = random_floats(sizes.count(), 1);
  Floats x = before, dx = before;
  ops->rope_forward(tensor_of(x, sizes.shape()), int(sizes.head_size), kTheta);
  ops->rope_backward(tensor_of(dx, sizes.shape()), int(sizes.head_size), kTheta);
  CHECK(distance_in_eps(x, turned(sizes, before, kTheta, 1), 1) < 4);
  // The map is a rotation, whose transpose, which a gradient goes through, is its inverse.
  CHECK(distance_in_eps(dx, turned(sizes, before, kTheta, -1), 1) < 4);
}

TEST_CASE("rope follows a change of its length, its head size and its base", "[kernels]") {
  TestBackend ops(backend_kinds().back());
  for (const auto& [s, theta] : {std::pair{RopeSizes{1, 5, 1, 8}, 1e4},
                                 {RopeSizes{1, 9, 1, 8}, 1e4},
                                 {RopeSizes{1, 3, 2, 4}, 1e4},
                                 {RopeSizes{1, 3, 2, 4}, 5e5}}) {
    const Floats before = random_floats(s.count(), 2);
    Floats x = before;
    ops->rope_forward(tensor_of(x, s.shape()), int(s.head_size), theta);
    CHECK(distance_in_eps(x, turned(s, before, theta, 1), 1) < 4);
  }
}

}  // namespace
}  // namespace gxp
