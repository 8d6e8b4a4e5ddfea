// Attention of f32 in one array.
#include <algorithm>

#include "tests/kernels/grouped_run.h"

namespace gxp {
namespace {

using oracle::AttentionSizes;
using oracle::Values;

GroupedRun packed_run(const AttentionSizes& sizes, float range = 1.0f) {
  return {sizes, sizes.heads, {.range = range, .layout = HeadLayout::kBlocks}};
}

// In epsilons, of values and gradients of at least `floor`.
struct Distances {
  Distances(const GroupedRun& run, double floor) {
    const GroupedOracle expected(run);
    out = distance_in_eps(run.out.floats(), expected.forward.out, floor);
    lse = distance_in_eps(run.lse, expected.forward.lse, 1);
    for (size_t i = 0; i < 3; ++i)
      gradient =
          std::max(gradient, distance_in_eps(run.gradients()[i], expected.gradients[i], floor));
  }
  double out, lse, gradient = 0;
};

TEST_CASE("the oracle's attention gradient is its central difference", "[kernels]") {
  const AttentionSizes s = {2, 4, 2, 3};
  const auto how = GENERATE(AttentionScores{}, AttentionScores{.scale = 0.9f, .cap = 0.5f},
                            AttentionScores{.window = 2});
  const GroupedRun run = packed_run(s);
  const Values qkv = run.packed(), dout = oracle::to_values(run.dout.floats());
  const auto numeric = oracle::central_difference(
      [&](const Values& v) { return oracle::dot(dout, oracle::attention(s, v, how).out); }, qkv);
  const auto analytic = oracle::attention_gradient(s, qkv, dout, how);
  for (size_t i = 0; i < qkv.size(); ++i) REQUIRE(numeric[i] == Approx(analytic[i]).margin(1e-9));
}

TEST_CASE("attention and its gradient are the oracle's for any size", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const size_t positions = GENERATE(1, 7, 33, 64, 65, 100);
  const size_t head_size = GENERATE(4, 8, 16, 20, 64);
  CAPTURE(kind.name, positions, head_size);
  TestBackend ops(kind);
  GroupedRun run = packed_run({1, positions, 2, head_size});
  run.run(ops);
  const Distances found(run, 1);
  CHECK(found.out < roundings(positions + head_size, 4));
  CHECK(found.lse < roundings(positions + head_size, 4));
  CHECK(found.gradient < roundings(positions + 2 * head_size, 8));
}

TEST_CASE("attention is right for several rows and heads on several threads", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  CAPTURE(kind.name);
  TestBackend ops(kind);
  GroupedRun run = packed_run({3, 70, 3, 16});
  run.run(ops);
  const Distances found(run, 1);
  CHECK(found.out < roundings(86, 4));
  CHECK(found.gradient < roundings(102, 8));
}

TEST_CASE("attention with scores far apart stays finite and right", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  GroupedRun run = packed_run({1, 130, 1, 16}, 20.0f);  // scores up to a thousand
  run.run(ops);
  const Distances found(run, 0);
  // A score of 1000 rounds to 1000 eps, which e^ makes a relative error.
  CHECK(found.out < 1000);
  CHECK(found.gradient < 4000);
}

TEST_CASE("a position's output does not depend on later positions", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  GroupedRun all = packed_run({1, 100, 2, 16}), changed = all;
  const size_t kept = GENERATE(1, 63, 64, 99), same = kept * all.s.channels();
  for (HalfArray* array : {&changed.queries, &changed.keys, &changed.values}) {
    Floats values = array->floats();
    std::fill(values.begin() + ptrdiff_t(same), values.end(), 9.0f);
    *array = HalfArray(values, DType::kF32);
  }
  for (GroupedRun* each : {&all, &changed}) each->run(ops);
  const Floats out = all.out.floats(), other = changed.out.floats();
  CHECK(std::equal(out.begin(), out.begin() + ptrdiff_t(same), other.begin()));
}

}  // namespace
}  // namespace gxp
