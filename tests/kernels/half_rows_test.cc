// Operations on rows that read or write halves: what they compute is what they compute of the same
// values as floats, rounded once.
#include "tests/combinations.h"
#include "tests/kernels/halves.h"
#include "tests/kernels/rotary.h"

namespace gxp {
namespace {

struct RowSizes {
  size_t rows, columns;
};
// Below, at and above what a warp and a block take at once, and what their shared memory holds; odd,
// and in fours.
const std::vector<RowSizes> kRowSizes = {{1, 5},    {300, 5},  {300, 64}, {3, 769},
                                         {65, 769}, {3, 4100}, {5, 12292}};
const std::vector<DType> kHalves = {DType::kBF16, DType::kF16};

// What an operation made: in f32, and in the type that was stored.
struct Made {
  std::vector<Floats> floats, stored;
};

// `count` values that `half` has, stored as `type`.
HalfArray halves(size_t count, unsigned seed, DType half, DType type, float range = 1.0f) {
  return {rounded(random_floats(count, seed, range), half), type};
}

// run(type) with values of a half type, as that type and as f32.
template <class Run>
void check_half(DType half, const Run& run) {
  CAPTURE(to_string(half));
  const Made made = run(half, half);
  Made expected = run(half, DType::kF32);
  for (Floats& array : expected.stored) array = rounded(array, half);
  CHECK(made.floats == expected.floats);
  CHECK(made.stored == expected.stored);
}
template <class Run>
void check_halves(const Run& run) {
  check_half(GENERATE(from_range(kHalves)), run);
}

TEST_CASE("norms of halves are norms of the same floats, rounded once", "[kernels]") {
  const auto chosen = GENERATE(from_range(combinations(backend_kinds(), kRowSizes, kHalves)));
  const BackendKind& kind = std::get<0>(chosen);
  const RowSizes s = std::get<1>(chosen);
  CAPTURE(kind.name, s.rows, s.columns);
  TestBackend ops(kind);
  const Shape shape = {s.rows, s.columns}, rows = {s.rows}, columns = {s.columns};
  check_half(std::get<2>(chosen), [&](DType half, DType type) {
    const size_t count = s.rows * s.columns;
    const Floats x = random_floats(count, 1, 3);
    HalfArray weight = halves(s.columns, 2, half, type), bias = halves(s.columns, 3, half, type);
    HalfArray dout = halves(count, 4, half, type), out(Floats(count), type), rms = out;
    Floats mean(s.rows), rstd(s.rows), rms_rstd(s.rows), dx(count), dweight(s.columns),
        dbias(s.columns);
    Floats rms_dx(count), rms_dweight(s.columns);
    ops->layernorm_forward(out.tensor(shape), tensor_of(mean, rows), tensor_of(rstd, rows),
                           tensor_of(x, shape), weight.tensor(columns), bias.tensor(columns),
                           1e-5f);
    ops->layernorm_backward({.dx = tensor_of(dx, shape),
                             .dweight = tensor_of(dweight, columns),
                             .dbias = tensor_of(dbias, columns),
                             .dout = dout.tensor(shape),
                             .x = tensor_of(x, shape),
                             .mean = tensor_of(mean, rows),
                             .rstd = tensor_of(rstd, rows),
                             .weight = weight.tensor(columns)});
    ops->rmsnorm_forward(rms.tensor(shape), tensor_of(rms_rstd, rows), tensor_of(x, shape),
                         weight.tensor(columns), 1e-5f);
    ops->rmsnorm_backward({.dx = tensor_of(rms_dx, shape),
                           .dweight = tensor_of(rms_dweight, columns),
                           .dout = dout.tensor(shape),
                           .x = tensor_of(x, shape),
                           .rstd = tensor_of(rms_rstd, rows),
                           .weight = weight.tensor(columns)});
    return Made{{mean, rstd, rms_rstd, dx, dweight, dbias, rms_dx, rms_dweight},
                {out.floats(), rms.floats()}};
  });
}

TEST_CASE("a norm's rows, weights and their form have any types, each rounded once or not at all",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const RowSizes s = GENERATE(RowSizes{300, 6}, RowSizes{70, 64}, RowSizes{3, 2052});
  const DType of_rows = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const DType of_weights = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const auto form = GENERATE(RmsWeight::kStored, RmsWeight::kPlusOne);
  CAPTURE(kind.name, s.rows, s.columns, to_string(of_rows), to_string(of_weights), form);
  TestBackend ops(kind);
  const Shape shape = {s.rows, s.columns};
  const Floats x = random_floats(s.rows * s.columns, 1, 3);
  const Floats douts = rounded(random_floats(x.size(), 2), of_rows);
  const Floats weights = rounded(random_floats(s.columns, 3), of_weights);
  const auto run = [&](DType type, HalfArray weight, RmsWeight as) {
    HalfArray out(Floats(x.size()), type), dout(douts, type);
    Made made{{Floats(s.rows), Floats(x.size()), Floats(s.columns)}, {}};
    const Tensor rstd = tensor_of(made.floats[0], {s.rows}), w = weight.tensor({s.columns});
    ops->rmsnorm_forward(out.tensor(shape), rstd, tensor_of(x, shape), w, 1e-5f, as);
    ops->rmsnorm_backward({.dx = tensor_of(made.floats[1], shape),
                           .dweight = tensor_of(made.floats[2], {s.columns}),
                           .dout = dout.tensor(shape),
                           .x = tensor_of(x, shape),
                           .rstd = rstd,
                           .weight = w,
                           .form = as});
    made.stored = {out.floats()};
    return made;
  };
  Floats factors = weights;
  for (float& factor : factors)
    if (form == RmsWeight::kPlusOne) factor += 1.0f;
  const Made made = run(of_rows, {weights, of_weights}, form);
  const Made expected = run(DType::kF32, {factors, DType::kF32}, RmsWeight::kStored);
  CHECK(made.floats == expected.floats);
  CHECK(made.stored[0] == rounded(expected.stored[0], of_rows));
}

// What the backward pass of either norm leaves.
struct NormGradientsRun {
  Floats dx, dweight, dbias;
  bool operator==(const NormGradientsRun&) const = default;
};
NormGradientsRun norm_backward(Ops& ops, const RowSizes& s, bool is_rms, DType type,
                               const StreamOutputs& also) {
  const Shape shape = {s.rows, s.columns};
  const size_t count = s.rows * s.columns;
  HalfArray dout(random_floats(count, 1), type), weight(random_floats(s.columns, 2), type);
  Floats x = random_floats(count, 3), mean = random_floats(s.rows, 4), rstd(s.rows, 0.7f);
  NormGradientsRun run{random_floats(count, 5), Floats(s.columns), Floats(s.columns)};
  NormBackward norm{.dx = tensor_of(run.dx, shape),
                    .dweight = tensor_of(run.dweight, {s.columns}),
                    .dout = dout.tensor(shape),
                    .x = tensor_of(x, shape),
                    .rstd = tensor_of(rstd, {s.rows}),
                    .weight = weight.tensor({s.columns}),
                    .also = also};
  if (is_rms) {
    ops.rmsnorm_backward(norm);
  } else {
    norm.dbias = tensor_of(run.dbias, {s.columns});
    norm.mean = tensor_of(mean, {s.rows});
    ops.layernorm_backward(norm);
  }
  return run;
}

oracle::Values column_sums(const Floats& before, const Floats& x) {
  oracle::Values sums = oracle::to_values(before);
  for (size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += double(x[i]);
  return sums;
}

TEST_CASE("a norm's backward also rounds the gradient that it completes and sums its columns",
          "[kernels]") {
  const auto chosen = GENERATE(
      from_range(combinations(backend_kinds(), kRowSizes, std::vector{false, true}, kHalves)));
  const BackendKind& kind = std::get<0>(chosen);
  const RowSizes s = std::get<1>(chosen);
  const bool is_rms = std::get<2>(chosen);
  const DType type = std::get<3>(chosen);
  CAPTURE(kind.name, s.rows, s.columns, is_rms, to_string(type));
  TestBackend ops(kind);
  HalfArray rounded_dx(Floats(s.rows * s.columns), type);
  const Floats before = random_floats(s.columns, 6);
  Floats sums = before, sums_alone = before;
  const Tensor place = rounded_dx.tensor({s.rows, s.columns});
  const auto run = norm_backward(*ops, s, is_rms, type, {place, tensor_of(sums, {s.columns})});
  CHECK(rounded_dx.floats() == rounded(run.dx, type));
  CHECK(distance_in_eps(sums, column_sums(before, run.dx), 1) < roundings(s.rows, 4));
  CHECK(norm_backward(*ops, s, is_rms, type, {}) == run);
  CHECK(norm_backward(*ops, s, is_rms, type, {.rounded = place}) == run);
  norm_backward(*ops, s, is_rms, type, {.column_sums = tensor_of(sums_alone, {s.columns})});
  CHECK(sums_alone == sums);
}

TEST_CASE("a gradient is rounded and its columns are summed, in one pass or in two", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const RowSizes s = GENERATE(from_range(kRowSizes));
  const DType type = GENERATE(DType::kBF16, DType::kF16);
  CAPTURE(kind.name, s.rows, s.columns, to_string(type));
  TestBackend ops(kind);
  const Shape shape = {s.rows, s.columns};
  const Floats x = random_floats(s.rows * s.columns, 1), before = random_floats(s.columns, 2);
  HalfArray both(Floats(x.size()), type), alone = both;
  Floats sums = before, sums_alone = before;
  ops->round_and_sum({both.tensor(shape), tensor_of(sums, {s.columns})}, tensor_of(x, shape));
  ops->round_and_sum({.rounded = alone.tensor(shape)}, tensor_of(x, shape));
  ops->bias_backward(tensor_of(sums_alone, {s.columns}), tensor_of(x, shape));
  CHECK(both.floats() == rounded(x, type));
  CHECK(alone.floats() == both.floats());
  CHECK(distance_in_eps(sums, column_sums(before, x), 1) < roundings(s.rows, 4));
  CHECK(sums_alone == sums);
}

TEST_CASE("sums of halves' columns are those of the same floats", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const RowSizes s = GENERATE(from_range(kRowSizes));
  CAPTURE(kind.name, s.rows, s.columns);
  TestBackend ops(kind);
  check_halves([&](DType half, DType type) {
    HalfArray dout = halves(s.rows * s.columns, 1, half, type);
    Floats dbias = random_floats(s.columns, 2);
    ops->bias_backward(tensor_of(dbias, {s.columns}), dout.tensor({s.rows, s.columns}));
    return Made{{dbias}, {}};
  });
}

TEST_CASE("the classifier of halves is that of the same floats, its gradients rounded once",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const RowSizes s = GENERATE(from_range(kRowSizes));
  CAPTURE(kind.name, s.rows, s.columns);
  TestBackend ops(kind);
  const Shape shape = {s.rows, s.columns}, rows = {s.rows};
  Indices targets = random_indices(s.rows, 1, s.columns);
  targets.back() = -1;
  check_halves([&](DType half, DType type) {
    HalfArray logits = halves(s.rows * s.columns, 2, half, type, 8);
    Floats losses(s.rows), fused(s.rows);
    ops->classifier_loss(tensor_of(losses, rows), logits.tensor(shape), tensor_of(targets, rows));
    ops->classifier(logits.tensor(shape), tensor_of(fused, rows), tensor_of(targets, rows), 0.5f);
    CHECK(fused == losses);
    return Made{{losses}, {logits.floats()}};
  });
}

TEST_CASE("positions turn halves as they turn the same floats, rounded once", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t head_size = GENERATE(2, 12, 64);
  const size_t heads = GENERATE(3, 40);
  CAPTURE(kind.name, head_size, heads);
  TestBackend ops(kind);
  const Shape shape = {2, 33, heads * head_size};
  const Rotary rotary = rotary_of(GENERATE_COPY(size_t{2}, head_size), 1e4);
  check_halves([&](DType half, DType type) {
    HalfArray x = halves(shape.count(), 1, half, type), dx = x;
    ops->rope_forward(x.tensor(shape), side_by_side(heads, head_size), rotary);
    ops->rope_backward(dx.tensor(shape), side_by_side(heads, head_size), rotary);
    return Made{{}, {x.floats(), dx.floats()}};
  });
}

TEST_CASE("embeddings of halves are those of the same floats", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t columns = GENERATE(5, 64, 1100);
  CAPTURE(kind.name, columns);
  TestBackend ops(kind);
  const Indices tokens = random_indices(60, 1, 7);
  check_halves([&](DType half, DType type) {
    HalfArray table = halves(7 * columns, 2, half, type),
              positions = halves(21 * columns, 3, half, type);
    Floats out(60 * columns), alone(60 * columns);
    ops->embedding_forward(tensor_of(out, {3, 20, columns}), tensor_of(tokens, {3, 20}),
                           table.tensor({7, columns}), positions.tensor({21, columns}));
    ops->embedding_forward(tensor_of(alone, {3, 20, columns}), tensor_of(tokens, {3, 20}),
                           table.tensor({7, columns}), {});
    return Made{{out, alone}, {}};
  });
}

}  // namespace
}  // namespace gxp
