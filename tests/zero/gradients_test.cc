#include "lib/zero/gradients.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lib/zero/flat_tensors.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/program/sample_programs.h"

namespace gxp {
namespace {

Tensor tensor_of(std::vector<float>& values) {
  return {memory_of(values), DType::kF32, Shape{values.size()}};
}

// Flat gradients of the sample model: element i of the buffer is f(i), padding included.
template <class F>
std::vector<float> flat_gradients(const ParameterLayout& layout, F f) {
  std::vector<float> flat(layout.count);
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = f(i);
  return flat;
}

double norm_with_threads(std::vector<float>& flat, const ParameterLayout& layout, int threads) {
  ThreadPool pool(threads);
  return std::sqrt(
      sum_of_squares(*make_cpu_ops(pool), layout, make_parts(layout, 1, 0), tensor_of(flat), 1));
}

TEST_CASE("the norm counts every element of every tensor once, and no padding", "[zero]") {
  const Architecture model = sample_architecture();
  const ParameterLayout layout = make_layout(model, 7);
  std::vector<float> ones = flat_gradients(layout, [](size_t) { return 1.0f; });
  CHECK(norm_with_threads(ones, layout, 1) == std::sqrt(double(model.parameter_count())));
}

TEST_CASE("the norm has the same bits for any number of threads", "[zero]") {
  const ParameterLayout layout = make_layout(sample_architecture(), 2);
  std::vector<float> waves = flat_gradients(layout, [](size_t i) { return std::sin(float(i)); });
  const double one = norm_with_threads(waves, layout, 1);
  CHECK(norm_with_threads(waves, layout, 2) == one);
  CHECK(norm_with_threads(waves, layout, 3) == one);
}

TEST_CASE("the first tensor that is not finite is named", "[zero]") {
  const Architecture model = sample_architecture();
  const ParameterLayout layout = make_layout(model, 2);
  std::vector<float> flat = flat_gradients(layout, [](size_t) { return 0.5f; });
  ThreadPool pool(1);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  const std::vector<TensorPart> parts = make_parts(layout, 1, 0);
  CHECK(find_non_finite(*ops, layout, parts, tensor_of(flat), 1) == nullptr);
  flat[layout.units[2].tensors[4].end() - 1] = std::numeric_limits<float>::infinity();
  flat[layout.units[3].tensors[0].begin] = std::numeric_limits<float>::quiet_NaN();
  const TensorPart* found = find_non_finite(*ops, layout, parts, tensor_of(flat), 1);
  REQUIRE(found != nullptr);
  CHECK(model.units[size_t(found->unit)].tensors[size_t(found->tensor)].name ==
        "transformer.h.1.attn.c_proj.weight");
}

TEST_CASE("a bucket's reduction sums its range and touches nothing else", "[zero]") {
  const ParameterLayout layout = make_layout(sample_architecture(), 3);
  const Bucket bucket = make_buckets(layout, 1).at(1);
  const auto sums = run_ranks(3, [&](Communicator& communicator) {
    std::vector<float> flat =
        flat_gradients(layout, [&](size_t) { return float(communicator.rank() + 1); });
    reduce_bucket(communicator, memory_of(flat), bucket);
    return flat;
  });
  for (int rank = 0; rank < 3; ++rank) {
    for (size_t i = 0; i < layout.count; ++i) {
      const bool inside = bucket.flat.begin <= i && i < bucket.flat.end();
      REQUIRE(sums[size_t(rank)][i] == (inside ? 6.0f : float(rank + 1)));
    }
  }
}

}  // namespace
}  // namespace gxp
