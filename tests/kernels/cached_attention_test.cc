// Attention of the last positions over cached keys and values.
#include "lib/base/range.h"
#include "tests/combinations.h"
#include "tests/kernels/grouped_run.h"

namespace gxp {
namespace {

// Rows `first` to `first + count` of each of `batch` parts of an array.
Floats rows_between(const Floats& all, size_t batch, size_t columns, const Range& rows) {
  const size_t positions = all.size() / batch / columns;
  Floats some;
  for (size_t b = 0; b < batch; ++b) {
    const auto begin = all.begin() + ptrdiff_t((b * positions + rows.begin) * columns);
    some.insert(some.end(), begin, begin + ptrdiff_t(rows.count * columns));
  }
  return some;
}

// The outputs of the last positions of `run`, of queries from `first` on, over arrays with room for
// more positions than the run has. What lies in that room is not read.
Floats cached_outputs(TestBackend& ops, GroupedRun& run, size_t first) {
  constexpr size_t kSpare = 5;
  const oracle::AttentionSizes& s = run.s;
  const auto arrays = run.arrays();
  const size_t count = s.positions - first;
  std::vector<HalfArray> queries, past;
  for (const Floats& array : arrays) {
    const size_t columns = array.size() / s.batch / s.positions;
    queries.emplace_back(rows_between(array, s.batch, columns, {first, count}), run.kind.dtype);
    Floats longer;
    for (size_t b = 0; b < s.batch; ++b) {
      const auto begin = array.begin() + ptrdiff_t(b * s.positions * columns);
      longer.insert(longer.end(), begin, begin + ptrdiff_t(s.positions * columns));
      longer.resize(longer.size() + kSpare * columns, std::nanf(""));
    }
    past.emplace_back(longer, run.kind.dtype);
  }
  const auto tensor = [&](std::vector<HalfArray>& of, size_t which, size_t positions) {
    const size_t columns = arrays[which % arrays.size()].size() / s.batch / s.positions;
    return ConstTensor(of[which % arrays.size()].tensor({s.batch, positions, columns}));
  };
  HalfArray out(Floats(s.batch * count * s.channels()), run.kind.dtype);
  ops->attention_cached(
      out.tensor({s.batch, count, s.channels()}),
      {tensor(queries, 0, count), tensor(past, 1, s.positions + kSpare),
       tensor(past, 2, s.positions + kSpare), int(s.heads), int(run.kv_heads), run.kind.layout},
      first, run.kind.scores);
  return out.floats();
}

TEST_CASE("cached attention is the oracle's of the last positions", "[kernels]") {
  struct Heads {
    size_t size, kv;
    HeadLayout layout;
  };
  const std::vector<Heads> all_heads = {{20, 4, kLayouts[0]},  {64, 1, kLayouts[0]},
                                        {130, 2, kLayouts[1]}, {6, 4, kLayouts[1]},
                                        {20, 4, kLayouts[2]},  {3, 4, kLayouts[2]}};
  const std::vector<AttentionScores> all_scores = {
      {}, {.window = 3}, {.scale = 0.4f, .cap = 0.7f}, {.cap = 30, .window = 140}};
  // The first query's position, and the end: an emulated GPU takes long for many queries.
  const std::vector<std::pair<size_t, size_t>> all_positions = {
      {0, 9}, {1, 20}, {140, 150}, {149, 150}};
  const auto [kind, positions, scores, heads] = GENERATE_COPY(
      from_range(combinations(backend_kinds(), all_positions, all_scores, all_heads)));
  const auto [first, end] = positions;
  const auto [head_size, kv_heads, layout] = heads;
  CAPTURE(kind.name, first, end, scores.window, scores.cap, kv_heads, head_size, int(layout));
  TestBackend ops(kind);
  GroupedRun run({2, end, 4, head_size}, kv_heads,
                 {.range = 2.0f, .scores = scores, .layout = layout});
  const GroupedOracle expected(run);
  const size_t columns = run.s.channels();
  const Floats all(expected.forward.out.begin(), expected.forward.out.end());
  const Floats last = rows_between(all, 2, columns, {first, end - first});
  // Scores up to 20, whose rounding e^ makes a relative error.
  CHECK(distance_in_eps(cached_outputs(ops, run, first), oracle::to_values(last), 1) <
        roundings(end + head_size, 24));
}

TEST_CASE("cached attention of halves is that of their values in f32, rounded", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const DType dtype = GENERATE(DType::kBF16, DType::kF16);
  const HeadLayout layout = GENERATE(from_range(kLayouts));
  CAPTURE(kind.name, to_string(dtype), int(layout));
  TestBackend ops(kind);
  GroupedRun halves({1, 40, 2, 16}, 2, {.dtype = dtype, .layout = layout});
  GroupedRun floats({1, 40, 2, 16}, 2, {.layout = layout});
  floats.queries = HalfArray(halves.queries.floats(), DType::kF32);
  floats.keys = HalfArray(halves.keys.floats(), DType::kF32);
  floats.values = HalfArray(halves.values.floats(), DType::kF32);
  CHECK(cached_outputs(ops, halves, 38) == rounded(cached_outputs(ops, floats, 38), dtype));
}

}  // namespace
}  // namespace gxp
