// Attention of bf16 and f16, which a backend may multiply as such.
#include <algorithm>

#include "tests/combinations.h"
#include "tests/kernels/grouped_run.h"

namespace gxp {
namespace {

// The largest relative error of a rounding to `dtype`, in epsilons of float.
double unit_of(DType dtype) {
  const double unit = dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  return unit / double(std::numeric_limits<float>::epsilon());
}

// The bounds for inputs up to 1. A value of out: P, whose sum is 1, may be rounded, and the result
// is. A gradient (let d = sqrt(D)): delta sums D products with rounded outs, an error of 4 * 2 / 3
// d units in four standard deviations; scale * P * K takes it to dQ, at most 8 / 3 units; dS, up to
// 4 / 3 d, may be rounded, which scale takes to 4 / 3; the result is rounded. So does P in dV. Each
// head that a sum is over adds such an error, independent of the others'.
struct Allowed {
  explicit Allowed(const GroupedRun& run)
      : out(2 * unit_of(run.kind.dtype) + roundings(run.s.positions + run.s.head_size, 4)),
        gradient(5 * unit_of(run.kind.dtype) * std::sqrt(double(run.s.heads / run.kv_heads))) {}
  double out, gradient;
};

void check_is_the_oracles(const GroupedRun& run) {
  const GroupedOracle expected(run);
  const Allowed allowed(run);
  CHECK(distance_in_eps(run.out.floats(), expected.forward.out, 1) < allowed.out);
  CHECK(distance_in_eps(run.lse, expected.forward.lse, 1) <
        roundings(run.s.positions + run.s.head_size, 4));
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance_in_eps(run.gradients()[i], expected.gradients[i], 1) < allowed.gradient);
}

TEST_CASE("attention of halves is the oracle's but for its roundings", "[kernels]") {
  using Sizes = std::tuple<size_t, size_t, size_t, size_t, size_t>;
  const std::vector<Sizes> all_sizes = {{2, 1, 2, 2, 64},    {3, 7, 4, 1, 128},  {2, 33, 4, 2, 64},
                                        {1, 64, 2, 2, 96},   {1, 65, 2, 1, 128}, {1, 130, 4, 1, 64},
                                        {1, 130, 1, 1, 128}, {2, 33, 4, 2, 20},  {1, 65, 2, 2, 4}};
  const auto [kind, dtype, sizes] = GENERATE_COPY(from_range(
      combinations(attention_kinds(), std::vector{DType::kBF16, DType::kF16}, all_sizes)));
  const auto [batch, positions, heads, kv_heads, head_size] = sizes;
  CAPTURE(kind.name, to_string(dtype), batch, positions, heads, kv_heads, head_size);
  TestBackend ops(kind);
  GroupedRun run({batch, positions, heads, head_size}, kv_heads, {.dtype = dtype});
  run.run(ops);
  check_is_the_oracles(run);
}

TEST_CASE("attention of halves with a window and a cap is the oracle's in every layout",
          "[kernels]") {
  struct Heads {
    size_t size, kv;
    HeadLayout layout;
  };
  const std::vector<Heads> all_heads = {
      {20, 1, HeadLayout::kSeparate}, {20, 2, HeadLayout::kPerHead},
      {64, 1, HeadLayout::kBlocks},   {64, 2, HeadLayout::kPerHead},
      {96, 2, HeadLayout::kBlocks},   {128, 1, HeadLayout::kSeparate},
      {128, 2, HeadLayout::kPerHead}};
  const auto [kind, dtype, window, cap, heads] = GENERATE_COPY(from_range(combinations(
      attention_kinds(), std::vector<DType>{DType::kBF16, DType::kF16},
      std::vector<size_t>{0, 1, 3, 32, 70, 1000}, std::vector<float>{0, 0.5f}, all_heads)));
  const auto [head_size, kv_heads, layout] = heads;
  CAPTURE(kind.name, to_string(dtype), window, cap, head_size, kv_heads, int(layout));
  TestBackend ops(kind);
  // A scale that is no larger than the default of any of these sizes, as the bounds have it.
  GroupedRun run({1, 150, 2, head_size}, kv_heads,
                 {.dtype = dtype, .scores = {0.08f, cap, window}, .layout = layout});
  run.run(ops);
  check_is_the_oracles(run);
}

TEST_CASE("attention of halves with scores far apart stays finite and right", "[kernels]") {
  const auto kind = GENERATE(from_range(of_one_thread(attention_kinds())));
  const DType dtype = GENERATE(DType::kBF16, DType::kF16);
  CAPTURE(kind.name, to_string(dtype));
  TestBackend ops(kind);
  GroupedRun run({1, 130, 1, 64}, 1, {.dtype = dtype, .range = 20.0f});  // scores up to a thousand
  run.run(ops);
  const GroupedOracle expected(run);
  const Allowed allowed(run);
  CHECK(distance_in_eps(run.out.floats(), expected.forward.out) < allowed.out + 1000);
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance_in_eps(run.gradients()[i], expected.gradients[i]) < allowed.gradient + 4000);
}

TEST_CASE("attention of halves has the same bits again, and whatever comes later", "[kernels]") {
  const auto chosen = GENERATE(from_range(combinations(of_one_thread(attention_kinds()),
                                                       std::vector{DType::kBF16, DType::kF16},
                                                       std::vector<size_t>{1, 63, 64, 69})));
  const BackendKind& kind = std::get<0>(chosen);
  const DType dtype = std::get<1>(chosen);
  const size_t kept = std::get<2>(chosen);
  CAPTURE(kind.name, to_string(dtype), kept);
  TestBackend ops(kind);
  const oracle::AttentionSizes sizes = {1, 70, 2, 64};
  GroupedRun run(sizes, 1, {.dtype = dtype}), again = run, changed = run;
  const auto change = [&](HalfArray& array) {
    Floats values = array.floats();
    std::fill(values.begin() + ptrdiff_t(kept * values.size() / 70), values.end(), 9.0f);
    array = HalfArray(values, dtype);
  };
  for (HalfArray* array : {&changed.queries, &changed.keys, &changed.values}) change(*array);
  for (GroupedRun* each : {&run, &again, &changed}) each->run(ops);
  CHECK(again.gradients() == run.gradients());
  const Floats out = run.out.floats(), other = changed.out.floats();
  CHECK(again.out.floats() == out);
  CHECK(std::equal(out.begin(), out.begin() + ptrdiff_t(kept * sizes.channels()), other.begin()));
}

}  // namespace
}  // namespace gxp
