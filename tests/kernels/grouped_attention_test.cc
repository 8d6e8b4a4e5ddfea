#include "tests/combinations.h"
#include "tests/kernels/grouped_run.h"

namespace gxp {
namespace {

TEST_CASE("grouped attention is the oracle's with keys and values repeated, and gradients summed",
          "[kernels]") {
  const std::vector<std::pair<size_t, size_t>> groupings = {{4, 1}, {4, 2}, {3, 3}, {6, 2}};
  const auto [kind, grouping, positions, head_size] = GENERATE_COPY(
      from_range(combinations(backend_kinds(), groupings, std::vector<size_t>{1, 33, 65, 100},
                              std::vector<size_t>{6, 16, 20})));
  const auto [heads, kv_heads] = grouping;
  CAPTURE(kind.name, heads, kv_heads, positions, head_size);
  TestBackend ops(kind);
  GroupedRun run({2, positions, heads, head_size}, kv_heads);
  run.run(ops);
  const GroupedOracle expected(run);
  const double forward = roundings(positions + head_size, 4);
  CHECK(distance_in_eps(run.out.floats(), expected.forward.out, 1) < forward);
  CHECK(distance_in_eps(run.lse, expected.forward.lse, 1) < forward);
  const double backward = roundings(heads / kv_heads * (positions + 2 * head_size), 8);
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance_in_eps(run.gradients()[i], expected.gradients[i], 1) < backward);
}

TEST_CASE("attention has the same bits in every layout", "[kernels]") {
  const auto kind = GENERATE(from_range(of_one_thread(attention_kinds())));
  const auto [dtype, head_size, kv_heads] = GENERATE(table<DType, size_t, size_t>(
      {{DType::kF32, 20, 4}, {DType::kBF16, 20, 4}, {DType::kF16, 64, 4}, {DType::kF16, 64, 2}}));
  CAPTURE(kind.name, to_string(dtype), head_size, kv_heads);
  TestBackend ops(kind);
  const auto run_in = [&](HeadLayout layout) {
    GroupedRun run({2, 70, 4, head_size}, kv_heads, {.dtype = dtype, .layout = layout});
    run.run(ops);
    return run;
  };
  const GroupedRun expected = run_in(HeadLayout::kSeparate);
  for (const HeadLayout layout : kLayouts) {
    if (layout == HeadLayout::kPerHead && kv_heads != 4) continue;
    const GroupedRun run = run_in(layout);
    CHECK(run.out.floats() == expected.out.floats());
    CHECK(run.gradients() == expected.gradients());
  }
}

TEST_CASE("attention with a window, a cap and a scale is the oracle's in every layout",
          "[kernels]") {
  struct Heads {
    size_t size, kv;
    HeadLayout layout;
  };
  const std::vector<Heads> all_heads = {{20, 4, kLayouts[0]}, {64, 1, kLayouts[0]},
                                        {20, 1, kLayouts[1]}, {64, 4, kLayouts[1]},
                                        {20, 4, kLayouts[2]}, {64, 4, kLayouts[2]}};
  const auto [kind, window, cap, scale, heads] = GENERATE_COPY(from_range(
      combinations(backend_kinds(), std::vector<size_t>{0, 1, 3, 64, 70, 1000},
                   std::vector<float>{0, 0.7f, 30}, std::vector<float>{0, 0.4f}, all_heads)));
  const auto [head_size, kv_heads, layout] = heads;
  CAPTURE(kind.name, window, cap, scale, kv_heads, head_size, int(layout));
  TestBackend ops(kind);
  GroupedRun run({1, 150, 4, head_size}, kv_heads,
                 {.range = 2.0f, .scores = {scale, cap, window}, .layout = layout});
  run.run(ops);
  const GroupedOracle expected(run);
  // Scores up to 20, whose rounding e^ makes a relative error.
  const double forward = roundings(150 + head_size, 24);
  CHECK(distance_in_eps(run.out.floats(), expected.forward.out, 1) < forward);
  CHECK(distance_in_eps(run.lse, expected.forward.lse, 1) < forward);
  const double backward = 4 * roundings(4 / kv_heads * (150 + 2 * head_size), 48);
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance_in_eps(run.gradients()[i], expected.gradients[i], 1) < backward);
}

TEST_CASE("a window of all positions is none", "[kernels]") {
  const auto kind = GENERATE(from_range(of_one_thread(attention_kinds())));
  CAPTURE(kind.name);
  TestBackend ops(kind);
  GroupedRun none({1, 70, 2, 64}, 2, {.dtype = DType::kBF16}), all = none;
  all.kind.scores.window = 70;
  for (GroupedRun* each : {&none, &all}) each->run(ops);
  CHECK(all.out.floats() == none.out.floats());
  CHECK(all.gradients() == none.gradients());
}

}  // namespace
}  // namespace gxp
