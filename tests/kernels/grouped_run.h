// Attention, forward and backward, on arrays of any of the three types, in any layout.
#pragma once

#include "tests/kernels/halves.h"

namespace gxp {

inline const std::vector<HeadLayout> kLayouts = {HeadLayout::kSeparate, HeadLayout::kBlocks,
                                                 HeadLayout::kPerHead};

// What a run of attention varies in besides its sizes. `range`: of the queries, keys and values.
struct AttentionKind {
  DType dtype = DType::kF32;
  float range = 1.0f;
  AttentionScores scores = {};
  HeadLayout layout = HeadLayout::kSeparate;
};

// Attention whose `s.heads` heads of queries share `kv_heads` heads of keys and values. The numbers
// are the same in every layout; here, they and their gradients have arrays of their own.
struct GroupedRun {
  GroupedRun(const oracle::AttentionSizes& sizes, size_t kv, const AttentionKind& of = {})
      : s(sizes),
        kv_heads(kv),
        kind(of),
        queries(random_floats(rows() * s.channels(), 1, of.range), of.dtype),
        keys(random_floats(rows() * kv_heads * s.head_size, 2, of.range), of.dtype),
        values(random_floats(rows() * kv_heads * s.head_size, 3, of.range), of.dtype),
        dout(random_floats(rows() * s.channels(), 4), of.dtype),
        out(Floats(rows() * s.channels()), of.dtype),
        dqueries(Floats(rows() * s.channels(), 7.0f), of.dtype),
        dkeys(Floats(rows() * kv_heads * s.head_size, 7.0f), of.dtype),
        dvalues(dkeys),
        lse(s.pairs() * s.positions),
        delta(lse.size()) {}

  void run(TestBackend& ops) {
    const Shape wide = {s.batch, s.positions, s.channels()};
    const Shape narrow = {s.batch, s.positions, kv_heads * s.head_size};
    if (kind.layout == HeadLayout::kSeparate)
      return run(ops, {queries.tensor(wide), keys.tensor(narrow), values.tensor(narrow)},
                 {dqueries.tensor(wide), dkeys.tensor(narrow), dvalues.tensor(narrow)});
    const Floats joined = arrays()[0];
    HalfArray all(joined, kind.dtype), dall(Floats(joined.size(), 7.0f), kind.dtype);
    const Shape shape = {s.batch, s.positions, heads_in_row() * s.head_size};
    const Tensor in = all.tensor(shape), gradients = dall.tensor(shape);
    run(ops, {in, in, in}, {gradients, gradients, gradients});
    std::array<Floats, 3> parts = {queries.floats(), keys.floats(), values.floats()};
    const Floats found = dall.floats();
    for_joined([&](size_t slice, size_t at, size_t from) { parts[slice][at] = found[from]; });
    dqueries = HalfArray(parts[0], kind.dtype);
    dkeys = HalfArray(parts[1], kind.dtype);
    dvalues = HalfArray(parts[2], kind.dtype);
  }

  // Queries, keys and values as the layout has them: three arrays, or one.
  [[nodiscard]] std::vector<Floats> arrays() const {
    const std::vector<Floats> separate = {queries.floats(), keys.floats(), values.floats()};
    if (kind.layout == HeadLayout::kSeparate) return separate;
    Floats joined((separate[0].size() / s.heads) * heads_in_row());
    for_joined([&](size_t slice, size_t at, size_t to) { joined[to] = separate[slice][at]; });
    return {joined};
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
  AttentionKind kind;
  HalfArray queries, keys, values, dout, out, dqueries, dkeys, dvalues;
  Floats lse, delta;
  Indices document_begin;  // (batch, positions); or none

 private:
  void run(TestBackend& ops, const std::array<Tensor, 3>& in, const std::array<Tensor, 3>& to) {
    const Shape wide = {s.batch, s.positions, s.channels()};
    const Shape sums = {s.batch, s.heads, s.positions};
    const GroupedHeads<ConstTensor> inputs = {in[0],        in[1],         in[2],
                                              int(s.heads), int(kv_heads), kind.layout};
    const ConstTensor begins =
        document_begin.empty() ? ConstTensor() : tensor_of(document_begin, {s.batch, s.positions});
    ops->attention_forward(out.tensor(wide), tensor_of(lse, sums), inputs, kind.scores, begins);
    ops->attention_backward({to[0], to[1], to[2], inputs.heads, inputs.kv_heads, kind.layout},
                            tensor_of(delta, sums), dout.tensor(wide), inputs, out.tensor(wide),
                            tensor_of(lse, sums), kind.scores, begins);
  }

  [[nodiscard]] size_t heads_in_row() const { return s.heads + 2 * kv_heads; }
  // visit(slice, element of the slice's array, element of the layout's one array) for each element.
  template <class Visit>
  void for_joined(const Visit& visit) const {
    const bool per_head = kind.layout == HeadLayout::kPerHead;
    for (size_t slice = 0; slice < 3; ++slice) {
      const size_t heads = slice == 0 ? s.heads : kv_heads;
      const size_t first = std::array<size_t, 3>{0, s.heads, s.heads + kv_heads}[slice];
      for (size_t at = 0; at < rows() * heads * s.head_size; ++at) {
        const size_t row = at / s.head_size / heads, head = at / s.head_size % heads;
        const size_t in_row = per_head ? 3 * head + slice : first + head;
        visit(slice, at, (row * heads_in_row() + in_row) * s.head_size + at % s.head_size);
      }
    }
  }
};

// The oracle's, of a run's input; gradients of what heads share are summed.
struct GroupedOracle {
  explicit GroupedOracle(const GroupedRun& run)
      : forward(oracle::attention(run.s, run.packed(), run.kind.scores)) {
    const oracle::Values packed = oracle::attention_gradient(
        run.s, run.packed(), oracle::to_values(run.dout.floats()), run.kind.scores);
    for (size_t i = 0; i < 3; ++i) gradients[i].resize(run.gradients()[i].size());
    run.for_packed(
        [&](size_t slice, size_t to, size_t from) { gradients[slice][to] += packed[from]; });
  }
  oracle::Attention forward;
  std::array<oracle::Values, 3> gradients;
};

}  // namespace gxp
