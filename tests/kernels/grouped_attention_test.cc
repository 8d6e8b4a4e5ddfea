#include <algorithm>

#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::AttentionSizes;
using oracle::Values;

// Attention whose `s.heads` heads of queries share `kv_heads` heads of keys and values.
struct GroupedRun {
  GroupedRun(const AttentionSizes& sizes, size_t kv)
      : s(sizes),
        kv_heads(kv),
        queries(random_floats(rows() * s.channels(), 1)),
        keys(random_floats(rows() * kv_heads * s.head_size, 2)),
        values(random_floats(keys.size(), 3)),
        dout(random_floats(queries.size(), 4)),
        out(queries.size()),
        lse(s.pairs() * s.positions),
        delta(lse.size()),
        dqueries(queries.size(), 7.0f),
        dkeys(keys.size(), 7.0f),
        dvalues(keys.size(), 7.0f) {}

  void run(TestBackend& ops) {
    const Shape wide = {s.batch, s.positions, s.channels()};
    const Shape narrow = {s.batch, s.positions, kv_heads * s.head_size};
    const Shape sums = {s.batch, s.heads, s.positions};
    const GroupedHeads<ConstTensor> in = {
        tensor_of(std::as_const(queries), wide), tensor_of(std::as_const(keys), narrow),
        tensor_of(std::as_const(values), narrow), int(s.heads), int(kv_heads)};
    ops->grouped_attention_forward(tensor_of(out, wide), tensor_of(lse, sums), in);
    ops->grouped_attention_backward({tensor_of(dqueries, wide), tensor_of(dkeys, narrow),
                                     tensor_of(dvalues, narrow), in.heads, in.kv_heads},
                                    tensor_of(delta, sums), tensor_of(dout, wide), in,
                                    tensor_of(out, wide), tensor_of(lse, sums));
  }

  [[nodiscard]] size_t rows() const { return s.batch * s.positions; }
  // Where head `head` of slice 0, 1, 2 of packed row `row` comes from: array and element.
  [[nodiscard]] size_t source(size_t slice, size_t row, size_t head) const {
    const size_t heads = slice == 0 ? s.heads : kv_heads;
    return (row * heads + (slice == 0 ? head : head / (s.heads / kv_heads))) * s.head_size;
  }
  // visit(slice, element of the slice's array, element of (B, T, 3C)) for every packed element:
  // what the oracle sees has a copy of the keys and values for each head of queries.
  template <class Visit>
  void for_packed(const Visit& visit) const {
    for (size_t i = 0; i < rows() * 3 * s.channels(); ++i) {
      const size_t column = i % (3 * s.channels());
      const size_t slice = column / s.channels();
      const size_t head = column % s.channels() / s.head_size;
      visit(slice, source(slice, i / (3 * s.channels()), head) + column % s.head_size, i);
    }
  }
  [[nodiscard]] Values packed() const {
    Values qkv(rows() * 3 * s.channels());
    const Floats* arrays[] = {&queries, &keys, &values};
    for_packed([&](size_t slice, size_t from, size_t to) { qkv[to] = (*arrays[slice])[from]; });
    return qkv;
  }

  AttentionSizes s;
  size_t kv_heads;
  Floats queries, keys, values, dout, out, lse, delta, dqueries, dkeys, dvalues;
};

TEST_CASE("grouped attention is the oracle's with keys and values repeated, and gradients summed",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const auto [heads, kv_heads] = GENERATE(table<size_t, size_t>({{4, 1}, {4, 2}, {3, 3}, {6, 2}}));
  const size_t positions = GENERATE(1, 33, 65, 100);
  const size_t head_size = GENERATE(6, 16, 20);
  CAPTURE(kind.name, heads, kv_heads, positions, head_size);
  TestBackend ops(kind);
  GroupedRun run({2, positions, heads, head_size}, kv_heads);
  run.run(ops);
  const auto forward = oracle::attention(run.s, run.packed());
  CHECK(distance_in_eps(run.out, forward.out, 1) < roundings(positions + head_size, 4));
  CHECK(distance_in_eps(run.lse, forward.lse, 1) < roundings(positions + head_size, 4));
  const Values gradient =
      oracle::attention_gradient(run.s, run.packed(), oracle::to_values(run.dout));
  Values sums[] = {Values(run.dqueries.size()), Values(run.dkeys.size()), Values(run.dkeys.size())};
  run.for_packed([&](size_t slice, size_t to, size_t from) { sums[slice][to] += gradient[from]; });
  const double close = roundings(heads / kv_heads * (positions + 2 * head_size), 8);
  CHECK(distance_in_eps(run.dqueries, sums[0], 1) < close);
  CHECK(distance_in_eps(run.dkeys, sums[1], 1) < close);
  CHECK(distance_in_eps(run.dvalues, sums[2], 1) < close);
}

TEST_CASE("attention has the same bits whether its operands lie in one array or in three",
          "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  GroupedRun run({2, 70, 3, 20}, 3);
  run.run(ops);
  Floats qkv, out(run.out.size()), lse(run.lse.size()), dqkv(3 * out.size()), delta(lse.size());
  for (const double value : run.packed()) qkv.push_back(float(value));
  const Shape wide = {2, 70, 180}, rows = {2, 70, 60}, sums = {2, 3, 70};
  ops->attention_forward(tensor_of(out, rows), tensor_of(lse, sums),
                         tensor_of(std::as_const(qkv), wide), 3);
  ops->attention_backward(tensor_of(dqkv, wide), tensor_of(delta, sums), tensor_of(run.dout, rows),
                          tensor_of(qkv, wide), tensor_of(out, rows), tensor_of(lse, sums), 3);
  CHECK(out == run.out);
  const Floats* arrays[] = {&run.dqueries, &run.dkeys, &run.dvalues};
  run.for_packed([&](size_t slice, size_t at, size_t packed) {
    if ((*arrays[slice])[at] != dqkv[packed]) FAIL("element " << packed);
  });
}

}  // namespace
}  // namespace gxp
