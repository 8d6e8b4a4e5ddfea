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

TEST_CASE("attention has the same bits whether its operands lie in one array or in three",
          "[kernels]") {
  const auto kind = GENERATE(from_range(of_one_thread(attention_kinds())));
  const auto [dtype, head_size] =
      GENERATE(table<DType, size_t>({{DType::kF32, 20}, {DType::kBF16, 20}, {DType::kF16, 64}}));
  CAPTURE(kind.name, to_string(dtype), head_size);
  TestBackend ops(kind);
  GroupedRun run({2, 70, 3, head_size}, 3, dtype);
  run.run(ops);
  const oracle::Values packed = run.packed();
  HalfArray qkv(Floats(packed.begin(), packed.end()), dtype), dqkv = qkv, out = run.out;
  Floats lse(run.lse.size()), delta(lse.size());
  const Shape wide = {2, 70, 9 * head_size}, rows = {2, 70, 3 * head_size}, sums = {2, 3, 70};
  ops->attention_forward(out.tensor(rows), tensor_of(lse, sums), qkv.tensor(wide), 3);
  ops->attention_backward(dqkv.tensor(wide), tensor_of(delta, sums), run.dout.tensor(rows),
                          qkv.tensor(wide), out.tensor(rows), tensor_of(lse, sums), 3);
  CHECK(out.floats() == run.out.floats());
  const auto arrays = run.gradients();
  const Floats gradients = dqkv.floats();
  run.for_packed([&](size_t slice, size_t at, size_t in_packed) {
    if (arrays[slice][at] != gradients[in_packed]) FAIL("element " << in_packed);
  });
}

}  // namespace
}  // namespace gxp
