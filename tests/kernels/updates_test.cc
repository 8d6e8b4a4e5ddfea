// The updates of optimizers other than AdamW's, and the statistics of matrices that some of them
// need.
#include <cmath>

#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::Values;

constexpr int kSteps = 5;

Floats gradients_of(size_t count, int step) {
  return random_floats(count, unsigned(10 + step), 0.1f);
}

TEST_CASE("sgd follows the oracle over several steps, with and without momentum", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(1, 15, 1025, 3001);
  const bool has_momentum = GENERATE(true, false);
  CAPTURE(kind.name, count, has_momentum);
  TestBackend ops(kind);
  const SgdStep step = {0.1, 0.2, {0.9, 0.8, 0.7, 0.6, 0.5}};
  Floats weights = random_floats(count, 1), momentum(count);
  Values w = oracle::to_values(weights), m(count);
  for (int t = 1; t <= kSteps; ++t) {
    const Floats gradients = gradients_of(count, t);
    ops->sgd(tensor_of(weights, {count}), has_momentum ? tensor_of(momentum, {count}) : Tensor(),
             tensor_of(gradients, {count}), step);
    for (size_t i = 0; i < count; ++i) {
      const double g = 0.5 * gradients[i] + 0.2 * w[i];
      m[i] = 0.9 * m[i] + 0.8 * g;
      w[i] -= 0.1 * (has_momentum ? 0.7 * m[i] + 0.6 * g : g);
    }
  }
  CHECK(distance_in_eps(weights, w) < roundings(kSteps, 4));
  if (has_momentum) CHECK(distance_in_eps(momentum, m) < roundings(kSteps, 4));
}

TEST_CASE("lion follows the oracle over several steps", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(1, 15, 1025, 3001);
  CAPTURE(kind.name, count);
  TestBackend ops(kind);
  Floats weights = random_floats(count, 1), momentum(count);
  Values w = oracle::to_values(weights), m(count);
  for (int t = 1; t <= kSteps; ++t) {
    const Floats gradients = gradients_of(count, t);
    ops->lion(tensor_of(weights, {count}), tensor_of(momentum, {count}),
              tensor_of(gradients, {count}), {0.01, 0.9, 0.99, 0.2, 0.5});
    for (size_t i = 0; i < count; ++i) {
      const double g = 0.5 * gradients[i];
      const double blend = 0.9 * m[i] + 0.1 * g;
      w[i] -= 0.01 * (std::copysign(1.0, blend) + 0.2 * w[i]);
      m[i] = 0.99 * m[i] + 0.01 * g;
    }
  }
  CHECK(distance_in_eps(weights, w) < roundings(kSteps, 4));
  CHECK(distance_in_eps(momentum, m, 1e-3) < roundings(kSteps, 4));  // of terms that may cancel
}

TEST_CASE("a direction is sgd's, written over the gradient or elsewhere", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t count = GENERATE(0, 1, 15, 1025);
  TestBackend ops(kind);
  const MomentumStep step = {0.9, 0.8, 0.7, 0.6, 0.5};
  Floats gradients = gradients_of(count, 1), momentum = random_floats(count, 1);
  Floats again = momentum, direction(count);
  Values expected(count);
  for (size_t i = 0; i < count; ++i) {
    const double g = 0.5 * gradients[i];
    expected[i] = 0.7 * (0.9 * momentum[i] + 0.8 * g) + 0.6 * g;
  }
  ops->momentum(tensor_of(direction, {count}), tensor_of(momentum, {count}),
                tensor_of(gradients, {count}), step);
  ops->momentum(tensor_of(gradients, {count}), tensor_of(again, {count}),
                tensor_of(gradients, {count}), step);
  CHECK(distance_in_eps(direction, expected) < 8);
  CHECK(gradients == direction);
  CHECK(momentum == again);
}

TEST_CASE("sums of squares of rows and columns are exact to f64, on any number of threads",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const auto [rows, columns] =
      GENERATE(table<size_t, size_t>({{1, 1}, {5, 33}, {70, 17}, {1, 99}, {2100, 68}}));
  CAPTURE(kind.name, rows, columns);
  TestBackend ops(kind);
  const Floats x = random_floats(rows * columns, 1);
  std::vector<double> by_row(rows), by_column(columns, 7.0);
  const double rounding = 1e-14 + double(rows) * 0x1p-53;  // of a sum one by one
  ops->sums_of_squares({memory_of(by_row), DType::kF64, Shape{rows}},
                       {memory_of(by_column), DType::kF64, Shape{columns}},
                       tensor_of(x, {rows, columns}));
  for (size_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (size_t j = 0; j < columns; ++j) sum += double(x[i * columns + j]) * x[i * columns + j];
    CHECK(by_row[i] == Approx(sum).epsilon(rounding));
  }
  for (size_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (size_t i = 0; i < rows; ++i) sum += double(x[i * columns + j]) * x[i * columns + j];
    CHECK(by_column[j] == Approx(sum).epsilon(rounding));
  }
}

TEST_CASE("a matrix is scaled by its rows' and its columns' factors, in place too", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const auto [rows, columns] =
      GENERATE(table<size_t, size_t>({{1, 1}, {5, 33}, {70, 17}, {9, 1028}}));
  TestBackend ops(kind);
  Floats x = random_floats(rows * columns, 1), out(rows * columns);
  const Floats by_row = random_floats(rows, 2), by_column = random_floats(columns, 3);
  Values expected(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    expected[i] = double(x[i]) * by_row[i / columns] * by_column[i % columns];
  ops->scale_rows_and_columns(tensor_of(out, {rows, columns}), tensor_of(x, {rows, columns}),
                              tensor_of(by_row, {rows}), tensor_of(by_column, {columns}));
  ops->scale_rows_and_columns(tensor_of(x, {rows, columns}), tensor_of(x, {rows, columns}),
                              tensor_of(by_row, {rows}), tensor_of(by_column, {columns}));
  CHECK(distance_in_eps(out, expected) < 4);
  CHECK(x == out);
}

}  // namespace
}  // namespace gxp
