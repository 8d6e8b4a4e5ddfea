#include <cmath>
#include <limits>

#include "kernels/math/erfc.h"
#include "kernels/math/exp.h"
#include "kernels/math/gelu.h"
#include "kernels/math/gelu_erf.h"
#include "kernels/math/silu.h"
#include "kernels/math/softmax.h"
#include "kernels/math/tanh.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("exp is within 2e-7 of e^x over its whole range", "[kernels]") {
  double worst = 0;
  for (double at = -87.0; at <= 88.3; at += 0.00037) {
    const auto x = float(at);
    if (x < -87.0f) continue;
    worst = std::max(worst, std::abs(double(exp_of(x)) / std::exp(double(x)) - 1));
  }
  CHECK(worst < 2e-7);
}

TEST_CASE("exp is exact at 0, 0 below its range, infinite above, and keeps NaN", "[kernels]") {
  CHECK(exp_of(0.0f) == 1.0f);
  CHECK(exp_of(-0.0f) == 1.0f);
  for (const float x : {-87.1f, -1e30f, -kInfinity, -std::numeric_limits<float>::max()})
    CHECK(exp_of(x) == 0.0f);
  for (const float x : {88.4f, 1e30f, kInfinity, std::numeric_limits<float>::max()})
    CHECK(exp_of(x) == kInfinity);
  CHECK(std::isnan(exp_of(std::nanf(""))));
  CHECK(std::isnan(exp_of(-std::nanf("0x12345"))));
}

TEST_CASE("silu leaves large values and drives small ones to zero", "[kernels]") {
  for (const float x : {20.0f, 1e5f, 1e30f}) CHECK(silu(x) == Approx(x).epsilon(1e-7));
  for (const float x : {-100.0f, -1e5f, -1e30f}) CHECK(std::abs(silu(x)) < 1e-30f);
  for (const float x : {20.0f, 1e5f, 1e30f}) CHECK(silu_and_slope(x).slope == Approx(1));
  for (const float x : {-100.0f, -1e5f, -1e30f}) CHECK(std::abs(silu_and_slope(x).slope) < 1e-30f);
  CHECK(std::isnan(silu(std::nanf(""))));
}

TEST_CASE("gelu leaves large values and drives small ones to zero", "[kernels]") {
  for (const float x : {20.0f, 1e5f, 1e18f, 1e30f}) CHECK(gelu(x) == x);
  for (const float x : {-20.0f, -1e5f, -1e30f}) CHECK(std::abs(gelu(x)) < 1e-30f);
  for (const float x : {20.0f, 1e5f, 1e18f}) CHECK(gelu_and_slope(x).slope == 1.0f);
  for (const float x : {-20.0f, -1e5f, -1e18f}) CHECK(std::abs(gelu_and_slope(x).slope) < 1e-30f);
  CHECK(std::isnan(gelu(std::nanf(""))));
}

TEST_CASE("tanh is within 2e-7 of the real one, near zero too", "[kernels]") {
  double worst = 0;
  for (double size = 1e-20; size < 100; size *= 1.0003) {
    for (const float x : {float(size), float(-size)})
      worst = std::max(worst, std::abs(double(tanh_of(x)) / std::tanh(double(x)) - 1));
  }
  CHECK(worst < 2e-7);
}

TEST_CASE("tanh is 0 at 0, 1 far out, and keeps NaN", "[kernels]") {
  CHECK(tanh_of(0.0f) == 0.0f);
  for (const float x : {20.0f, 1e30f, kInfinity}) CHECK(tanh_of(x) == 1.0f);
  for (const float x : {-20.0f, -1e30f, -kInfinity}) CHECK(tanh_of(x) == -1.0f);
  CHECK(std::isnan(tanh_of(std::nanf(""))));
}

TEST_CASE("a cap leaves small values and bounds large ones", "[kernels]") {
  CHECK(capped(0.01f, 50.0f) == Approx(0.01).epsilon(1e-6));
  CHECK(capped(1e6f, 50.0f) == 50.0f);
  const float z = capped(70.0f, 50.0f);
  CHECK(z == Approx(50 * std::tanh(1.4)).epsilon(1e-6));
  CHECK(slope_of_capped(z, 50.0f) == Approx(1 / std::pow(std::cosh(1.4), 2)).epsilon(1e-5));
}

TEST_CASE("erfc is within 5e-7 of the function, relatively, wherever it is a normal float",
          "[kernels]") {
  double worst = 0;
  for (double at = 0; at <= 9.2; at += 0.00013) {
    const auto z = float(at);
    const auto exponential = float(std::exp(-double(z) * double(z)));
    worst = std::max(worst, std::abs(double(erfc_of(z, exponential)) / std::erfc(double(z)) - 1));
  }
  CHECK(worst < 5.1e-7);
  CHECK(erfc_of(0.0f, 1.0f) == 1.0f);
  CHECK(erfc_of(kInfinity, 0.0f) == 0.0f);
}

TEST_CASE("gelu by erf leaves large values, drives small ones to zero, and errs as stated",
          "[kernels]") {
  double worst = 0, worst_slope = 0;
  for (double at = -13; at <= 13; at += 0.00023) {
    const auto x = float(at);
    const double phi = std::erfc(-double(x) / std::sqrt(2.0)) / 2;
    const double density = std::exp(-double(x) * double(x) / 2) * 0.3989422804014327;
    const auto [value, slope] = gelu_erf_and_slope(x);
    worst = std::max(worst, std::abs(value / (x * phi) - 1) / (4e-7 + 4e-8 * at * at));
    worst_slope = std::max(worst_slope, std::abs(slope - (phi + x * density)));
  }
  CHECK(worst < 1);
  CHECK(worst_slope < 2e-7);
  for (const float x : {20.0f, 1e5f, 1e30f}) CHECK(gelu_erf(x) == x);
  for (const float x : {-20.0f, -1e5f, -1e30f}) CHECK(gelu_erf(x) == 0.0f);
  for (const float x : {20.0f, 1e18f, 1e30f}) CHECK(gelu_erf_and_slope(x).slope == 1.0f);
  for (const float x : {-20.0f, -1e18f, -1e30f}) CHECK(gelu_erf_and_slope(x).slope == 0.0f);
  CHECK(std::isnan(gelu_erf(std::nanf(""))));
}

TEST_CASE("merging the parts of a row in any order gives the row's softmax sum", "[kernels]") {
  const SoftmaxPart<float> a = {1.0f, 2.0f};
  const SoftmaxPart<float> b = {3.0f, 1.5f};
  const SoftmaxPart<float> nothing = {-kInfinity, 0.0f};
  const auto merged = merge(a, b);
  CHECK(merged.maximum == 3.0f);
  CHECK(merged.sum == Approx(2.0 * std::exp(-2.0) + 1.5).epsilon(1e-6));
  CHECK(merge(b, a).sum == merged.sum);
  CHECK(merge(nothing, a).sum == a.sum);
}

}  // namespace
}  // namespace gxp
