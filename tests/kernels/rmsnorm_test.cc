#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::Values;

constexpr float kRmsEps = 1e-5f;

Values rmsnorm(const Values& x, const Values& weight) {
  const size_t columns = weight.size();
  Values out(x.size());
  for (size_t row = 0; row < x.size(); row += columns) {
    double squares = 0;
    for (size_t c = 0; c < columns; ++c) squares += x[row + c] * x[row + c];
    const double rstd = 1 / std::sqrt(squares / double(columns) + kRmsEps);
    for (size_t c = 0; c < columns; ++c) out[row + c] = x[row + c] * rstd * weight[c];
  }
  return out;
}

struct RmsnormGradients {
  Values dx, dweight;
};

// By the quotient rule: d(x_i r)/dx_j = r (i == j) - x_i x_j r^3 / C.
RmsnormGradients rmsnorm_gradients(const Values& x, const Values& weight, const Values& dout) {
  const size_t columns = weight.size();
  RmsnormGradients result{Values(x.size()), Values(columns)};
  for (size_t row = 0; row < x.size(); row += columns) {
    double squares = 0, product = 0;
    for (size_t c = 0; c < columns; ++c) {
      squares += x[row + c] * x[row + c];
      product += dout[row + c] * weight[c] * x[row + c];
    }
    const double r = 1 / std::sqrt(squares / double(columns) + kRmsEps);
    for (size_t c = 0; c < columns; ++c) {
      result.dx[row + c] =
          dout[row + c] * weight[c] * r - x[row + c] * product * r * r * r / double(columns);
      result.dweight[c] += dout[row + c] * x[row + c] * r;
    }
  }
  return result;
}

TEST_CASE("the oracle's rmsnorm gradients are central differences", "[kernels]") {
  const Values x = oracle::to_values(random_floats(10, 1));
  const Values weight = oracle::to_values(random_floats(5, 2));
  const Values dout = oracle::to_values(random_floats(10, 3));
  const auto analytic = rmsnorm_gradients(x, weight, dout);
  const auto at_x = [&](const Values& v) { return oracle::dot(dout, rmsnorm(v, weight)); };
  const auto at_weight = [&](const Values& v) { return oracle::dot(dout, rmsnorm(x, v)); };
  const Values dx = oracle::central_difference(at_x, x);
  const Values dweight = oracle::central_difference(at_weight, weight);
  for (size_t i = 0; i < 10; ++i) CHECK(dx[i] == Approx(analytic.dx[i]).margin(1e-7));
  for (size_t i = 0; i < 5; ++i) CHECK(dweight[i] == Approx(analytic.dweight[i]).margin(1e-7));
}

TEST_CASE("rmsnorm and its gradients are the oracle's, and apply again has the same bits",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const auto form = GENERATE(RmsWeight::kStored, RmsWeight::kPlusOne);
  // As rows of a stream, and the many short ones of heads.
  const auto [rows, columns] = GENERATE(table<size_t, size_t>({{1, 1},
                                                               {3, 4},
                                                               {200, 5},
                                                               {65, 64},
                                                               {1, 769},
                                                               {200, 769},
                                                               {3, 4100},
                                                               {65, 4100},
                                                               {5000, 6},
                                                               {2500, 64},
                                                               {700, 256}}));
  CAPTURE(kind.name, form, rows, columns);
  TestBackend ops(kind);
  const Shape shape = {rows, columns};
  const Floats x = random_floats(rows * columns, 1, 3), weight = random_floats(columns, 2);
  const Floats dout = random_floats(rows * columns, 3);
  const Floats before_x = random_floats(rows * columns, 4), before_weight(columns, 0.5f);
  Floats out(rows * columns), again(rows * columns), rstd(rows);
  Floats dx = before_x, dweight = before_weight;
  ops->rmsnorm_forward(tensor_of(out, shape), tensor_of(rstd, {rows}), tensor_of(x, shape),
                       tensor_of(weight, {columns}), kRmsEps, form);
  ops->rmsnorm_apply(tensor_of(again, shape), tensor_of(x, shape), tensor_of(rstd, {rows}),
                     tensor_of(weight, {columns}), form);
  ops->rmsnorm_backward({.dx = tensor_of(dx, shape),
                         .dweight = tensor_of(dweight, {columns}),
                         .dout = tensor_of(dout, shape),
                         .x = tensor_of(x, shape),
                         .rstd = tensor_of(rstd, {rows}),
                         .weight = tensor_of(weight, {columns}),
                         .form = form});
  CHECK(again == out);
  const Values xs = oracle::to_values(x);
  const Values weights =
      plus(Floats(columns, form == RmsWeight::kPlusOne ? 1.0f : 0.0f), oracle::to_values(weight));
  CHECK(distance_in_eps(out, rmsnorm(xs, weights), 1) < roundings(columns, 6));
  const auto expected = rmsnorm_gradients(xs, weights, oracle::to_values(dout));
  CHECK(distance_in_eps(dx, plus(before_x, expected.dx), 1) < roundings(columns, 8));
  CHECK(distance_in_eps(dweight, plus(before_weight, expected.dweight), 1) < roundings(rows, 8));
}

}  // namespace
}  // namespace gxp
