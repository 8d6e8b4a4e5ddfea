#include "lib/model/initialise.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "lib/model/model.h"
#include "tests/catch.h"

namespace gxp {
namespace {

std::vector<float> initial_values(const TensorSpec& spec, uint64_t seed, int threads = 1,
                                  int layers = 8) {
  std::vector<float> values(spec.count(), 7.0f);
  ThreadPool pool(threads);
  initialise({memory_of(values), DType::kF32, Shape{values.size()}}, 0, spec, {seed, layers}, pool);
  return values;
}

double deviation(const std::vector<float>& values) {
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  return std::sqrt(squares / double(values.size()));
}

TEST_CASE("initial weights do not depend on the number of threads", "[model]") {
  const TensorSpec odd{"w", {101, 77}, Initial::kNormal};
  const std::vector<float> one = initial_values(odd, 1);
  CHECK(initial_values(odd, 1, 2) == one);
  CHECK(initial_values(odd, 1, 3) == one);
}

TEST_CASE("initial weights depend on the seed and on the tensor's name", "[model]") {
  const std::vector<float> values = initial_values({"a", {64}, Initial::kNormal}, 1);
  CHECK(initial_values({"a", {64}, Initial::kNormal}, 2) != values);
  CHECK(initial_values({"b", {64}, Initial::kNormal}, 1) != values);
}

TEST_CASE("normal weights have GPT-2's deviation, residual projections a smaller one", "[model]") {
  // 200,000 values: the sample's deviation is within 1% of the true one, six sigma and more.
  const std::vector<float> plain = initial_values({"w", {200000}, Initial::kNormal}, 3);
  const std::vector<float> residual = initial_values({"w", {200000}, Initial::kResidualNormal}, 3);
  CHECK(deviation(plain) == Approx(0.02).epsilon(0.01));
  CHECK(deviation(residual) == Approx(0.02 / std::sqrt(16.0)).epsilon(0.01));
  CHECK(std::accumulate(plain.begin(), plain.end(), 0.0) / 200000 == Approx(0).margin(3e-4));
}

TEST_CASE("norms start as the identity", "[model]") {
  CHECK(initial_values({"w", {5}, Initial::kOnes}, 1) == std::vector<float>(5, 1.0f));
  CHECK(initial_values({"b", {5}, Initial::kZeros}, 1) == std::vector<float>(5, 0.0f));
}

}  // namespace
}  // namespace gxp
