// Grouped attention, forward and backward, on arrays of any of the three types.
#pragma once

#include "tests/kernels/halves.h"

namespace gxp {

// Attention whose `s.heads` heads of queries share `kv_heads` heads of keys and values. `range`: of
// the queries, keys and values.
struct GroupedRun {
  GroupedRun(const oracle::AttentionSizes& sizes, size_t kv, DType type = DType::kF32,
             float range = 1.0f)
      : s(sizes),
        kv_heads(kv),
        dtype(type),
        queries(random_floats(rows() * s.channels(), 1, range), type),
        keys(random_floats(rows() * kv_heads * s.head_size, 2, range), type),
        values(random_floats(rows() * kv_heads * s.head_size, 3, range), type),
        dout(random_floats(rows() * s.channels(), 4), type),
        out(Floats(rows() * s.channels()), type),
        dqueries(Floats(rows() * s.channels(), 7.0f), type),
        dkeys(Floats(rows() * kv_heads * s.head_size, 7.0f), type),
        dvalues(dkeys),
        lse(s.pairs() * s.positions),
        delta(lse.size()) {}

  void run(TestBackend& ops) {
    const Shape wide = {s.batch, s.positions, s.channels()};
    const Shape narrow = {s.batch, s.positions, kv_heads * s.head_size};
    const Shape sums = {s.batch, s.heads, s.positions};
    const GroupedHeads<ConstTensor> in = {queries.tensor(wide), keys.tensor(narrow),
                                          values.tensor(narrow), int(s.heads), int(kv_heads)};
    ops->grouped_attention_forward(out.tensor(wide), tensor_of(lse, sums), in);
    ops->grouped_attention_backward({dqueries.tensor(wide), dkeys.tensor(narrow),
                                     dvalues.tensor(narrow), in.heads, in.kv_heads},
                                    tensor_of(delta, sums), dout.tensor(wide), in, out.tensor(wide),
                                    tensor_of(lse, sums));
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
  [[nodiscard]] oracle::Values packed() const {
    oracle::Values qkv(rows() * 3 * s.channels());
    const Floats arrays[] = {queries.floats(), keys.floats(), values.floats()};
    for_packed([&](size_t slice, size_t from, size_t to) { qkv[to] = arrays[slice][from]; });
    return qkv;
  }
  [[nodiscard]] std::array<Floats, 3> gradients() const {
    return {dqueries.floats(), dkeys.floats(), dvalues.floats()};
  }

  oracle::AttentionSizes s;
  size_t kv_heads;
  DType dtype;
  HalfArray queries, keys, values, dout, out, dqueries, dkeys, dvalues;
  Floats lse, delta;
};

// The oracle's, of a run's input; gradients of what heads share are summed.
struct GroupedOracle {
  explicit GroupedOracle(const GroupedRun& run) : forward(oracle::attention(run.s, run.packed())) {
    const oracle::Values packed =
        oracle::attention_gradient(run.s, run.packed(), oracle::to_values(run.dout.floats()));
    for (size_t i = 0; i < 3; ++i) gradients[i].resize(run.gradients()[i].size());
    run.for_packed(
        [&](size_t slice, size_t to, size_t from) { gradients[slice][to] += packed[from]; });
  }
  oracle::Attention forward;
  std::array<oracle::Values, 3> gradients;
};

}  // namespace gxp
