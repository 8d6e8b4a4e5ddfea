// Ops::linear_backward against the oracle.
#include <optional>

#include "tests/kernels/backends.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

using oracle::Values;

struct LinearSizes {
  size_t tokens, in, out;
};

// The gradients that a linear layer's backward has, of what it is given: `kept` instead of a GELU's
// value unless it is empty.
struct Expected {
  Expected(const LinearSizes& s, const Floats& in, const Floats& weight, const Floats& dout,
           bool of_gelu, const Floats& kept = {})
      : dx(s.tokens * s.in), dweight(s.in * s.out), dbias(s.out), value(oracle::to_values(in)) {
    for (size_t n = 0; n < s.tokens; ++n) {
      for (size_t i = 0; i < s.in; ++i) {
        const double x = in[n * s.in + i];
        double sum = 0;
        for (size_t o = 0; o < s.out; ++o)
          sum += double(dout[n * s.out + o]) * double(weight[i * s.out + o]);
        dx[n * s.in + i] = of_gelu ? sum * oracle::gelu_slope(x) : sum;
        if (of_gelu) value[n * s.in + i] = kept.empty() ? oracle::gelu(x) : kept[n * s.in + i];
        for (size_t o = 0; o < s.out; ++o)
          dweight[i * s.out + o] += value[n * s.in + i] * double(dout[n * s.out + o]);
      }
      for (size_t o = 0; o < s.out; ++o) dbias[o] += dout[n * s.out + o];
    }
  }
  Values dx, dweight, dbias, value;
};

// `count` roundings to the type and sums of `terms`, in float epsilons.
double tolerance(DType type, size_t terms, double count) {
  const double u = type == DType::kF32 ? 0 : type == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  return roundings(terms, 8) + count * u / double(std::numeric_limits<float>::epsilon());
}

// On a GPU cuBLASLt takes a GELU of halves and its slope with tanh.approx, whose relative error is
// up to 2^-11 (PTX ISA, tanh.approx.f32), as much as a rounding to f16. For arguments of up to 1 or
// so the value's error is at most half of that, the slope's all of it; twice that is allowed. The
// emulated cuBLASLt has none of it.
double of_approximate_tanh(const BackendKind& kind, DType type) {
  if (type == DType::kF32 || !kind.name.starts_with("cuda")) return 0;
  return 2 * 0x1p-11 / double(std::numeric_limits<float>::epsilon());
}

TEST_CASE("a linear layer's gradients are the oracle's, behind a GELU or not", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const LinearSizes s =
      GENERATE(LinearSizes{33, 40, 24}, LinearSizes{5, 7, 9}, LinearSizes{1, 8, 1});
  const DType type = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  const DType upstream_type = GENERATE(DType::kF32, DType::kBF16);
  if (upstream_type != DType::kF32 && upstream_type != type) return;
  const auto [of_gelu, is_kept] =
      GENERATE(table<bool, bool>({{false, false}, {true, false}, {true, true}}));
  const bool accumulate = GENERATE(false, true);
  CAPTURE(kind.name, s.tokens, s.in, s.out, to_string(type), to_string(upstream_type), of_gelu,
          is_kept, accumulate);
  TestBackend ops(kind);
  HalfArray in(random_floats(s.tokens * s.in, 1), type),
      weight(random_floats(s.in * s.out, 2), type);
  HalfArray dout(random_floats(s.tokens * s.out, 3), upstream_type),
      dx(Floats(s.tokens * s.in), type);
  Floats dweight(s.in * s.out, 0.5f), dbias(s.out, 0.5f);
  // Another than the GELU's: none is taken for it.
  HalfArray value(random_floats(s.tokens * s.in, 4), type);
  const Floats argument = in.floats();
  Expected expected(s, argument, weight.floats(), dout.floats(), of_gelu,
                    is_kept ? value.floats() : Floats());
  if (accumulate) {
    for (double& value : expected.dweight) value += 0.5;
    for (double& value : expected.dbias) value += 0.5;
  }
  ops->linear_backward({.dx = dx.tensor({s.tokens, s.in}),
                        .dweight = tensor_of(dweight, {s.in, s.out}),
                        .dbias = tensor_of(dbias, {s.out}),
                        .dout = dout.tensor({s.tokens, s.out}),
                        .in = in.tensor({s.tokens, s.in}),
                        .weight = weight.tensor({s.in, s.out}),
                        .of_gelu = of_gelu,
                        .activated = is_kept ? value.tensor({s.tokens, s.in}) : Tensor(),
                        .accumulate = accumulate});
  const double slope = of_gelu ? of_approximate_tanh(kind, type) : 0;
  CHECK(distance_in_eps(dx.floats(), expected.dx, 1) < tolerance(type, s.out, 3) + slope);
  CHECK(distance_in_eps(dweight, expected.dweight, 1) < tolerance(type, s.tokens, 2));
  CHECK(distance_in_eps(dbias, expected.dbias, 1) < tolerance(DType::kF32, s.tokens, 0));
  if (is_kept)
    CHECK(in.floats() == argument);
  else
    CHECK(distance_in_eps(in.floats(), expected.value, 1) < tolerance(type, 1, 1));
}

TEST_CASE("a linear layer and its GELU are the oracle's, its argument with or without it",
          "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const LinearSizes s =
      GENERATE(LinearSizes{33, 40, 24}, LinearSizes{5, 7, 9}, LinearSizes{1, 8, 1});
  const DType type = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  CAPTURE(kind.name, s.tokens, s.in, s.out, to_string(type));
  TestBackend ops(kind);
  HalfArray in(random_floats(s.tokens * s.in, 1), type), bias(random_floats(s.out, 3), type);
  HalfArray weight(random_floats(s.in * s.out, 2), type);
  HalfArray x(Floats(s.tokens * s.out), type), activated = x, alone = x;
  LinearGelu layer = {.activated = activated.tensor({s.tokens, s.out}),
                      .x = x.tensor({s.tokens, s.out}),
                      .in = in.tensor({s.tokens, s.in}),
                      .weight = weight.tensor({s.in, s.out}),
                      .bias = bias.tensor({s.out})};
  ops->linear_gelu(layer);
  layer.activated = {};
  layer.x = alone.tensor({s.tokens, s.out});
  ops->linear_gelu(layer);
  CHECK(alone.floats() == x.floats());
  Values argument = oracle::to_values(Floats(s.tokens * s.out)), value = argument;
  const Floats a = in.floats(), w = weight.floats(), b = bias.floats();
  for (size_t i = 0; i < argument.size(); ++i) {
    const size_t row = i / s.out, column = i % s.out;
    argument[i] = b[column];
    for (size_t k = 0; k < s.in; ++k)
      argument[i] += double(a[row * s.in + k]) * double(w[k * s.out + column]);
    value[i] = oracle::gelu(argument[i]);
  }
  CHECK(distance_in_eps(x.floats(), argument, 1) < tolerance(type, s.in, 1));
  // The error of the rounded argument, at a slope of at most 1.13.
  CHECK(distance_in_eps(activated.floats(), value, 1) <
        tolerance(type, s.in, 2.2) + of_approximate_tanh(kind, type));
}

TEST_CASE("frozen parameters of a linear layer get no gradient", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  Floats in = random_floats(6, 1), weight = random_floats(6, 2), dout = random_floats(4, 3);
  Floats dx(6);
  const Expected expected({2, 3, 2}, in, weight, dout, false);
  ops->linear_backward({.dx = tensor_of(dx, {2, 3}),
                        .dout = tensor_of(std::as_const(dout), {2, 2}),
                        .in = tensor_of(in, {2, 3}),
                        .weight = tensor_of(std::as_const(weight), {3, 2})});
  CHECK(distance_in_eps(dx, expected.dx, 1) < tolerance(DType::kF32, 2, 0));
}

}  // namespace
}  // namespace gxp
