#include <algorithm>

#include "tests/kernels/backends.h"

namespace gxp {
namespace {

using oracle::Values;

constexpr float kEps = 1e-5f;

// A layer norm's arguments, and what both passes make of them.
struct NormRun {
  NormRun(size_t row_count, size_t column_count)
      : rows(row_count),
        columns(column_count),
        x(random_floats(rows * columns, 1, 3)),
        weight(random_floats(columns, 2)),
        bias(random_floats(columns, 3)),
        dout(random_floats(rows * columns, 4)),
        out(rows * columns),
        mean(rows),
        rstd(rows) {}
  void forward(TestBackend& ops) {
    ops->layernorm_forward(tensor_of(out, {rows, columns}), tensor_of(mean, {rows}),
                           tensor_of(rstd, {rows}), tensor_of(std::as_const(x), {rows, columns}),
                           tensor_of(std::as_const(weight), {columns}),
                           tensor_of(std::as_const(bias), {columns}), kEps);
  }
  // The gradients are added to what they hold.
  void backward(TestBackend& ops, Floats& dx, Floats& dweight, Floats& dbias) {
    ops->layernorm_backward({.dx = tensor_of(dx, {rows, columns}),
                             .dweight = tensor_of(dweight, {columns}),
                             .dbias = tensor_of(dbias, {columns}),
                             .dout = tensor_of(dout, {rows, columns}),
                             .x = tensor_of(x, {rows, columns}),
                             .mean = tensor_of(mean, {rows}),
                             .rstd = tensor_of(rstd, {rows}),
                             .weight = tensor_of(weight, {columns})});
  }
  size_t rows, columns;
  Floats x, weight, bias, dout, out, mean, rstd;
};

TEST_CASE("the oracle's layernorm gradients are central differences", "[kernels]") {
  const size_t rows = 2;
  const size_t columns = 5;
  const Values x = oracle::to_values(random_floats(rows * columns, 1));
  const Values weight = oracle::to_values(random_floats(columns, 2));
  const Values bias = oracle::to_values(random_floats(columns, 3));
  const Values dout = oracle::to_values(random_floats(rows * columns, 4));
  const auto loss = [&](const Values& at_x, const Values& at_weight, const Values& at_bias) {
    return oracle::dot(dout, oracle::layernorm(at_x, at_weight, at_bias, kEps).out);
  };
  const auto analytic = oracle::layernorm_gradients(x, weight, dout, kEps);
  const auto check = [](const Values& numeric, const Values& expected) {
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(numeric[i] == Approx(expected[i]).margin(1e-7));
  };
  const auto at_x = [&](const Values& v) { return loss(v, weight, bias); };
  const auto at_weight = [&](const Values& v) { return loss(x, v, bias); };
  const auto at_bias = [&](const Values& v) { return loss(x, weight, v); };
  check(oracle::central_difference(at_x, x), analytic.dx);
  check(oracle::central_difference(at_weight, weight), analytic.dweight);
  check(oracle::central_difference(at_bias, bias), analytic.dbias);
}

TEST_CASE("layernorm normalises rows as the oracle does, and applies again to the same bits",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t rows = GENERATE(1, 3, 65);
  const size_t columns = GENERATE(1, 4, 5, 20, 64, 769, 4100);
  CAPTURE(kind.name, rows, columns);
  TestBackend ops(kind);
  NormRun run(rows, columns);
  run.forward(ops);
  const auto expected = oracle::layernorm(oracle::to_values(run.x), oracle::to_values(run.weight),
                                          oracle::to_values(run.bias), kEps);
  CHECK(distance_in_eps(run.mean, expected.mean, 1) < roundings(columns, 2));
  CHECK(distance_in_eps(run.rstd, expected.rstd) < roundings(columns, 4));
  // A rounding of x or of the mean, of size 3, grows by rstd.
  CHECK(distance_in_eps(run.out, expected.out, 3) < roundings(columns, 8));

  Floats again(rows * columns);
  ops->layernorm_apply(tensor_of(again, {rows, columns}), tensor_of(run.x, {rows, columns}),
                       tensor_of(run.mean, {rows}), tensor_of(run.rstd, {rows}),
                       tensor_of(run.weight, {columns}), tensor_of(run.bias, {columns}));
  CHECK(again == run.out);
}

TEST_CASE("layernorm's backward adds the oracle's gradients, also of many short rows",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const auto [rows, columns] = GENERATE(table<size_t, size_t>({{1, 4},
                                                               {3, 5},
                                                               {300, 20},
                                                               {65, 64},
                                                               {300, 769},
                                                               {3, 4100},
                                                               {300, 4100},
                                                               {65, 6301},
                                                               {5000, 6},
                                                               {2500, 64},
                                                               {700, 256}}));
  CAPTURE(kind.name, rows, columns);
  TestBackend ops(kind);
  NormRun run(rows, columns);
  run.forward(ops);
  const Floats before_x = random_floats(rows * columns, 5);
  const Floats before_weight = random_floats(columns, 6);
  const Floats before_bias = random_floats(columns, 7);
  Floats dx = before_x, dweight = before_weight, dbias = before_bias;
  run.backward(ops, dx, dweight, dbias);
  const auto expected = oracle::layernorm_gradients(
      oracle::to_values(run.x), oracle::to_values(run.weight), oracle::to_values(run.dout), kEps);
  CHECK(distance_in_eps(dx, plus(before_x, expected.dx), 1) < roundings(columns, 8));
  CHECK(distance_in_eps(dweight, plus(before_weight, expected.dweight), 1) < roundings(rows, 8));
  CHECK(distance_in_eps(dbias, plus(before_bias, expected.dbias), 1) < roundings(rows, 8));
}

TEST_CASE("bias_backward adds the sums of columns", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t rows = GENERATE(1, 3, 64, 65, 300);
  const size_t columns = GENERATE(1, 20, 97, 260);
  CAPTURE(kind.name, rows, columns);
  TestBackend ops(kind);
  const Floats dout = random_floats(rows * columns, 1);
  const Floats before = random_floats(columns, 2);
  Floats dbias = before;
  ops->bias_backward(tensor_of(dbias, {columns}), tensor_of(dout, {rows, columns}));
  Values expected = oracle::to_values(before);
  for (size_t i = 0; i < dout.size(); ++i) expected[i % columns] += dout[i];
  CHECK(distance_in_eps(dbias, expected, 1) < roundings(rows, 4));
}

struct Embedding {
  size_t batch, positions, channels, vocabulary;
  bool as_in_text = false;  // few tokens are frequent: Zipf's law
  [[nodiscard]] Shape rows() const { return {batch, positions, channels}; }
  [[nodiscard]] size_t count() const { return batch * positions * channels; }
  [[nodiscard]] Indices tokens() const {
    Indices tokens = random_indices(batch * positions, 1, as_in_text ? 1 << 20 : vocabulary);
    for (int32_t& token : tokens)
      if (as_in_text) token = int32_t(std::pow(vocabulary, token * 0x1p-20)) - 1;
    return tokens;
  }
};
// Few channels and many, in fours or not; tokens that are all there are, often, or rare; one token
// everywhere, in a few more rows than are added one by one, and in many more.
const std::vector<Embedding> kEmbeddings = {
    {3, 7, 20, 5},  {1, 9, 131, 3}, {2, 700, 5, 5},   {2, 300, 516, 97},     {2, 700, 4, 50257},
    {1, 256, 4, 1}, {1, 257, 5, 1}, {3, 700, 132, 1}, {3, 900, 20, 97, true}};

// `table` and each token's rows: one by one in their order, or those after the first `piece` by sums
// of as many.
Floats plus_token_rows(Floats table, const Indices& tokens, const Floats& dout, size_t piece) {
  const size_t channels = dout.size() / tokens.size();
  Floats sum(table.size());
  std::vector<size_t> seen(table.size() / channels);
  const auto add_sum = [&](size_t token) {
    for (size_t at = token * channels; at < (token + 1) * channels; ++at)
      table[at] += std::exchange(sum[at], 0.0f);
  };
  for (size_t row = 0; row < tokens.size(); ++row) {
    const auto token = size_t(tokens[row]);
    const bool is_first = seen[token] < piece;
    for (size_t c = 0; c < channels; ++c)
      (is_first ? table : sum)[token * channels + c] += dout[row * channels + c];
    if (++seen[token] % piece == 0 && !is_first) add_sum(token);
  }
  for (size_t token = 0; token < seen.size(); ++token) add_sum(token);
  return table;
}
void check_token_gradients(const Floats& actual, const Floats& before, const Indices& tokens,
                           const Floats& dout) {
  CHECK((actual == plus_token_rows(before, tokens, dout, tokens.size() + 1) ||
         actual == plus_token_rows(before, tokens, dout, 256)));
}

TEST_CASE("an embedding is its token's row plus its position's row", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Embedding e = GENERATE(from_range(kEmbeddings));
  CAPTURE(kind.name, e.positions, e.channels, e.vocabulary);
  TestBackend ops(kind);
  const Indices tokens = e.tokens();
  const Floats by_token = random_floats(e.vocabulary * e.channels, 2);
  const Floats by_position = random_floats((e.positions + 2) * e.channels, 3);
  Floats out(e.count());
  ops->embedding_forward(tensor_of(out, e.rows()), tensor_of(tokens, {e.batch, e.positions}),
                         tensor_of(by_token, {e.vocabulary, e.channels}),
                         tensor_of(by_position, {e.positions + 2, e.channels}));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / e.channels;
    const size_t c = i % e.channels;
    REQUIRE(out[i] == by_token[size_t(tokens[row]) * e.channels + c] +
                          by_position[row % e.positions * e.channels + c]);
  }
}

TEST_CASE("an embedding without positions is its token's row, and the row gets its gradient",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Embedding e = GENERATE(from_range(kEmbeddings));
  CAPTURE(kind.name, e.positions, e.channels, e.vocabulary);
  TestBackend ops(kind);
  const Indices tokens = e.tokens();
  const Shape ids = {e.batch, e.positions};
  const Floats table = random_floats(e.vocabulary * e.channels, 2);
  Floats out(e.count()), gradient(table.size());
  ops->embedding_forward(tensor_of(out, e.rows()), tensor_of(tokens, ids),
                         tensor_of(table, {e.vocabulary, e.channels}), {});
  ops->embedding_backward(tensor_of(gradient, {e.vocabulary, e.channels}), {},
                          tensor_of(std::as_const(out), e.rows()), tensor_of(tokens, ids));
  for (size_t i = 0; i < out.size(); ++i)
    REQUIRE(out[i] == table[size_t(tokens[i / e.channels]) * e.channels + i % e.channels]);
  check_token_gradients(gradient, Floats(table.size()), tokens, out);
}

TEST_CASE("embedding_backward adds each row to its token's and its position's, in order",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Embedding e = GENERATE(from_range(kEmbeddings));
  CAPTURE(kind.name, e.positions, e.channels, e.vocabulary);
  TestBackend ops(kind);
  const Indices tokens = e.tokens();
  const Floats dout = random_floats(e.count(), 2);
  const Floats before = random_floats(e.vocabulary * e.channels, 3);
  Floats by_token = before, by_position = random_floats((e.positions + 2) * e.channels, 4);
  Floats expected_position = by_position;
  ops->embedding_backward(tensor_of(by_token, {e.vocabulary, e.channels}),
                          tensor_of(by_position, {e.positions + 2, e.channels}),
                          tensor_of(dout, e.rows()), tensor_of(tokens, {e.batch, e.positions}));
  for (size_t i = 0; i < dout.size(); ++i)
    expected_position[i % (e.positions * e.channels)] += dout[i];
  check_token_gradients(by_token, before, tokens, dout);
  CHECK(by_position == expected_position);
}

TEST_CASE("the rows of a padding token add nothing to its own row, and to their positions' as ever",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const Embedding e = GENERATE(from_range(kEmbeddings));
  CAPTURE(kind.name, e.positions, e.channels, e.vocabulary);
  TestBackend ops(kind);
  const Indices tokens = e.tokens();
  const Floats dout = random_floats(e.count(), 2);
  const Floats before = random_floats(e.vocabulary * e.channels, 3);
  const auto run = [&](int padding) {
    std::array<Floats, 2> tables = {before, Floats(e.positions * e.channels)};
    ops->embedding_backward(tensor_of(tables[0], {e.vocabulary, e.channels}),
                            tensor_of(tables[1], {e.positions, e.channels}),
                            tensor_of(dout, e.rows()), tensor_of(tokens, {e.batch, e.positions}),
                            padding);
    return tables;
  };
  auto expected = run(-1);
  const auto padded = ptrdiff_t(size_t(tokens[0]) * e.channels);
  std::copy_n(before.begin() + padded, e.channels, expected[0].begin() + padded);
  CHECK(run(tokens[0]) == expected);
}

TEST_CASE("a token beyond the vocabulary is caught, by a GPU when a sum is read", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const Indices tokens = {0, GENERATE(5, -1)};
  const bool forward = GENERATE(true, false);
  TestBackend ops(kind);
  Floats table(5 * 4), out(2 * 4);
  const auto read = [&](const Indices& ids) {
    if (forward)
      ops->embedding_forward(tensor_of(out, {1, 2, 4}), tensor_of(ids, {1, 2}),
                             tensor_of(table, {5, 4}), {});
    else
      ops->embedding_backward(tensor_of(table, {5, 4}), {}, tensor_of(out, {1, 2, 4}),
                              tensor_of(ids, {1, 2}));
    return ops->sum(tensor_of(table, {5, 4}));
  };
  CHECK(read({0, 4}) == 0);
  CHECK_THROWS_AS(read(tokens), Error);
}

}  // namespace
}  // namespace gxp
