// The promise of kernels/ops.h and of training "same world size, same bits": results depend on
// shapes alone, not on the thread count and not on the run.
#include <cstring>

#include "tests/kernels/backends.h"
#include "tests/kernels/rotary.h"

namespace gxp {
namespace {

struct Sizes {
  size_t batch, positions, heads, channels, vocabulary;
};

// Every operation of GPT-2 once, one behind the other; the arrays they leave, end to end.
Floats run_everything(Ops& ops, const Sizes& s) {
  const size_t n = s.batch * s.positions;
  const size_t c = s.channels;
  const Shape rows = {s.batch, s.positions, c};
  Floats table = random_floats(s.vocabulary * c, 1), positions = random_floats(s.positions * c, 2);
  const auto tokens = random_indices(n, 3, s.vocabulary);
  const Tensor token_table = tensor_of(table, {s.vocabulary, c});
  const Tensor position_table = tensor_of(positions, {s.positions, c});
  Floats x(n * c), norm(n * c), mean(n), rstd(n), weight = random_floats(c, 4), bias(c, 0.5f);
  ops.embedding_forward(tensor_of(x, rows), tensor_of(tokens, {s.batch, s.positions}), token_table,
                        position_table);
  ops.layernorm_forward(tensor_of(norm, rows), tensor_of(mean, {n}), tensor_of(rstd, {n}),
                        tensor_of(std::as_const(x), rows), tensor_of(std::as_const(weight), {c}),
                        tensor_of(std::as_const(bias), {c}), 1e-5f);
  Floats qkv = random_floats(n * 3 * c, 5), out(n * c), lse(n * s.heads), dqkv(n * 3 * c);
  Floats delta(n * s.heads), logits = random_floats(n * s.vocabulary, 6), losses(n);
  const int heads = int(s.heads);
  const Shape wide = {s.batch, s.positions, 3 * c};
  const Shape sums = {s.batch, s.heads, s.positions};
  const Tensor in = tensor_of(qkv, wide), din = tensor_of(dqkv, wide);
  const GroupedHeads<ConstTensor> packed = {in, in, in, heads, heads, HeadLayout::kBlocks};
  ops.attention_forward(tensor_of(out, rows), tensor_of(lse, sums), packed);
  ops.attention_backward({din, din, din, heads, heads, HeadLayout::kBlocks}, tensor_of(delta, sums),
                         tensor_of(norm, rows), packed, tensor_of(out, rows), tensor_of(lse, sums));
  ops.classifier(tensor_of(logits, {n, s.vocabulary}), tensor_of(losses, {n}),
                 tensor_of(tokens, {n}), 0.1f);
  Floats activated(n * c), dx = random_floats(n * c, 7);
  ops.activation_backward(Activation::kGeluTanh, tensor_of(dx, rows), tensor_of(activated, rows),
                          tensor_of(dx, rows), tensor_of(norm, rows));
  Floats dweight(c), dbias(c);
  ops.layernorm_backward({.dx = tensor_of(dx, rows),
                          .dweight = tensor_of(dweight, {c}),
                          .dbias = tensor_of(dbias, {c}),
                          .dout = tensor_of(activated, rows),
                          .x = tensor_of(x, rows),
                          .mean = tensor_of(mean, {n}),
                          .rstd = tensor_of(rstd, {n}),
                          .weight = tensor_of(weight, {c})});
  ops.bias_backward(tensor_of(dbias, {c}), tensor_of(dx, rows));
  ops.embedding_backward(token_table, position_table, tensor_of(dx, rows),
                         tensor_of(tokens, {s.batch, s.positions}));
  Floats first(c), second(c);
  ops.adamw(tensor_of(weight, {c}), tensor_of(first, {c}), tensor_of(second, {c}),
            tensor_of(dweight, {c}), {1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 1.0});
  Floats all;
  for (const Floats* part : {&x, &norm, &out, &lse, &dqkv, &logits, &losses, &activated, &dx,
                             &dweight, &dbias, &table, &positions, &weight, &first, &second})
    all.insert(all.end(), part->begin(), part->end());
  all.push_back(float(ops.sum_of_squares(tensor_of(std::as_const(table), {table.size()}))));
  return all;
}

// The same for those that only Llama has and its like, Gemma 2's scores among them; half as many
// heads of keys and values.
Floats run_llama(Ops& ops, const Sizes& s) {
  const size_t n = s.batch * s.positions;
  const size_t c = s.channels;
  const Shape rows = {s.batch, s.positions, c}, narrow = {s.batch, s.positions, c / 2};
  const Shape sums = {s.batch, s.heads, s.positions};
  Floats x = random_floats(n * c, 1), norm(n * c), rstd(n), weight = random_floats(c, 2);
  ops.rmsnorm_forward(tensor_of(norm, rows), tensor_of(rstd, {n}), tensor_of(x, rows),
                      tensor_of(weight, {c}), 1e-5f);
  Floats keys = random_floats(n * c / 2, 3), values = random_floats(n * c / 2, 4), out(n * c);
  Floats lse(n * s.heads), dq(n * c), dk(n * c / 2), dv(n * c / 2), delta(n * s.heads);
  const HeadColumns all_heads = side_by_side(s.heads, c / s.heads);
  const Rotary rotary = rotary_of(c / s.heads, 1e4);
  ops.rope_forward(tensor_of(x, rows), all_heads, rotary);
  const AttentionScores scores = {.cap = 0.5f, .window = 20};
  const int heads = int(s.heads);
  const GroupedHeads<ConstTensor> in = {tensor_of(x, rows), tensor_of(keys, narrow),
                                        tensor_of(values, narrow), heads, heads / 2};
  ops.attention_forward(tensor_of(out, rows), tensor_of(lse, sums), in, scores);
  ops.attention_backward(
      {tensor_of(dq, rows), tensor_of(dk, narrow), tensor_of(dv, narrow), heads, heads / 2},
      tensor_of(delta, sums), tensor_of(norm, rows), in, tensor_of(out, rows), tensor_of(lse, sums),
      scores);
  ops.rope_backward(tensor_of(dq, rows), all_heads, rotary);
  Floats gate = norm, up = out, dweight(c);
  ops.gated_backward(Activation::kSilu, tensor_of(dq, rows), tensor_of(gate, rows),
                     tensor_of(up, rows));
  ops.rmsnorm_backward({.dx = tensor_of(up, rows),
                        .dweight = tensor_of(dweight, {c}),
                        .dout = tensor_of(gate, rows),
                        .x = tensor_of(x, rows),
                        .rstd = tensor_of(rstd, {n}),
                        .weight = tensor_of(weight, {c})});
  Floats all;
  for (const Floats* part : {&x, &norm, &out, &lse, &dq, &dk, &dv, &gate, &up, &dweight})
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

TEST_CASE("results have the same bits for any thread count and in every run", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const auto sizes = GENERATE(Sizes{2, 70, 4, 32, 97}, Sizes{3, 100, 6, 60, 301});
  const auto run_all = GENERATE(run_everything, run_llama);
  CAPTURE(to_string(isa), sizes.positions);
  TestBackend one(cpu_kind(isa, 1));
  const Floats expected = run_all(*one, sizes);
  for (const int threads : {1, 2, 3, 5}) {
    TestBackend ops(cpu_kind(isa, threads));
    for (int run = 0; run < 2; ++run) {
      const Floats actual = run_all(*ops, sizes);
      CAPTURE(threads, run);
      CHECK(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)) == 0);
    }
  }
}

}  // namespace
}  // namespace gxp
