#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::Values;

constexpr float kScale = 0.25f;

TEST_CASE("the oracle's loss gradient is its central difference", "[kernels]") {
  const size_t columns = 7;
  const Values logits = oracle::to_values(random_floats(columns, 1, 3));
  const auto numeric = oracle::central_difference(
      [&](const Values& v) { return kScale * oracle::loss(v, 0, columns, 3); }, logits);
  const auto analytic = oracle::loss_gradient(logits, 0, columns, 3, kScale);
  for (size_t i = 0; i < columns; ++i) CHECK(numeric[i] == Approx(analytic[i]).margin(1e-9));
}

TEST_CASE("the classifier's losses and gradients are the oracle's", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t columns = GENERATE(1, 5, 97, 1000, 9001);
  const float range = GENERATE(2.0f, 60.0f);
  const size_t rows = 3;
  CAPTURE(kind.name, columns, range);
  TestBackend ops(kind);
  Floats logits = random_floats(rows * columns, 1, range);
  auto targets = random_indices(rows, 2, columns);
  targets[1] = -1;
  const Values before = oracle::to_values(logits);
  Values losses, gradients;
  for (size_t row = 0; row < rows; ++row) {
    losses.push_back(oracle::loss(before, row, columns, targets[row]));
    const auto gradient = oracle::loss_gradient(before, row, columns, targets[row], kScale);
    gradients.insert(gradients.end(), gradient.begin(), gradient.end());
  }
  Floats loss_only(rows), fused(rows);
  const Shape shape = {rows, columns};
  ops->classifier_loss(tensor_of(loss_only, {rows}), tensor_of(std::as_const(logits), shape),
                       tensor_of(targets, {rows}));
  ops->classifier(tensor_of(logits, shape), tensor_of(fused, {rows}), tensor_of(targets, {rows}),
                  kScale);
  // The loss is a difference of values as large as the logits.
  CHECK(distance_in_eps(loss_only, losses, 1) < roundings(columns, 4));
  CHECK(distance_in_eps(fused, losses, 1) < roundings(columns, 4));
  // x - maximum rounds in units of the range, and e^ makes that relative.
  CHECK(distance_in_eps(logits, gradients, kScale) < roundings(columns, 4 + 2 * range));
}

TEST_CASE("the classifier reports NaN and infinity among the logits as a NaN loss", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const float bad = GENERATE(std::nanf(""), std::numeric_limits<float>::infinity());
  const size_t at = GENERATE(0, 5, 4100, 4999);
  TestBackend ops(kind);
  Floats logits = random_floats(5000, 1);
  logits[at] = bad;
  Floats losses(1);
  ops->classifier_loss(tensor_of(losses, {1}), tensor_of(std::as_const(logits), {1, 5000}),
                       tensor_of(Indices{7}, {1}));
  CHECK(std::isnan(losses[0]));
}

TEST_CASE("logits of minus infinity have no probability, wherever they are", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  Floats logits(9000, 1.0f);
  std::fill_n(logits.begin(), 8998, -std::numeric_limits<float>::infinity());
  Floats losses(1);
  ops->classifier(tensor_of(logits, {1, 9000}), tensor_of(losses, {1}),
                  tensor_of(Indices{8999}, {1}), 1);
  CHECK(losses[0] == Approx(std::log(2.0)));
  CHECK(logits[0] == 0.0f);
  CHECK(logits[8998] == Approx(0.5));
  CHECK(logits[8999] == Approx(-0.5));
}

TEST_CASE("a target beyond the vocabulary is caught, by a GPU when a sum is read", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const bool with_gradient = GENERATE(true, false);
  TestBackend ops(kind);
  Floats logits(5), losses(1);
  const auto lose = [&](const Indices& target) {
    if (with_gradient)
      ops->classifier(tensor_of(logits, {1, 5}), tensor_of(losses, {1}), tensor_of(target, {1}), 1);
    else
      ops->classifier_loss(tensor_of(losses, {1}), tensor_of(logits, {1, 5}),
                           tensor_of(target, {1}));
    return ops->sum(tensor_of(losses, {1}));
  };
  CHECK(lose({4}) == Approx(std::log(5.0)));
  CHECK_THROWS_AS(lose({5}), Error);
}

}  // namespace
}  // namespace gxp
