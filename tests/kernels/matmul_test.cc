// Ops::matmul with every option and type, against the oracle: what every backend is held to. The
// CPU's kernels have families of their own (gemm_test.cc, half_gemm_test.cc).
#include "tests/kernels/backends.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

using oracle::Values;

struct Types {
  DType a, b, out, bias;
};
const std::vector<Types> kTypes = {{DType::kF32, DType::kF32, DType::kF32, DType::kF32},
                                   {DType::kBF16, DType::kBF16, DType::kBF16, DType::kBF16},
                                   {DType::kBF16, DType::kBF16, DType::kF32, DType::kBF16},
                                   {DType::kF32, DType::kBF16, DType::kBF16, DType::kBF16},
                                   {DType::kBF16, DType::kF32, DType::kF32, DType::kBF16},
                                   {DType::kF16, DType::kF16, DType::kF16, DType::kF16},
                                   {DType::kF16, DType::kF32, DType::kF32, DType::kF16}};

struct Product {
  size_t m, n, k;
  bool transpose_a, transpose_b;
};
const std::vector<Product> kProducts = {{1, 1, 1, false, false},
                                        {3, 5, 7, true, false},
                                        {14, 32, 16, false, true},
                                        {65, 33, 31, true, true},
                                        {40, 47, 129, false, false}};

// op(a) op(b) of a (m, k) and a (k, n) matrix as they are stored, in double.
Values product_of(const Product& c, const Floats& a, const Floats& b) {
  Values out(c.m * c.n);
  for (size_t i = 0; i < c.m; ++i) {
    for (size_t j = 0; j < c.n; ++j) {
      for (size_t l = 0; l < c.k; ++l)
        out[i * c.n + j] += double(a[c.transpose_a ? l * c.m + i : i * c.k + l]) *
                            double(b[c.transpose_b ? j * c.k + l : l * c.n + j]);
    }
  }
  return out;
}

double relative_error(DType dtype) { return dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

// In f32 the sum's roundings; in a half type one more, of a value of the largest size, and another
// one where the bias is added to a product that was rounded: cuBLASLt has no epilogue for all shapes.
double tolerance(const Product& c, DType out, bool has_bias = false) {
  const double sums = roundings(c.k, 4);
  const double eps = double(std::numeric_limits<float>::epsilon());
  return out == DType::kF32 ? sums : sums + (has_bias ? 2 : 1) * relative_error(out) / eps;
}

enum class Additions { kNone, kBias, kAccumulate, kResidual, kBiasAndResidual };

TEST_CASE("a backend's products are the oracle's, of any types, with what is added to them",
          "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  const Types types = GENERATE(from_range(kTypes));
  const Additions extra = GENERATE(Additions::kNone, Additions::kBias, Additions::kAccumulate,
                                   Additions::kResidual, Additions::kBiasAndResidual);
  const bool has_bias = extra == Additions::kBias || extra == Additions::kBiasAndResidual;
  const bool has_residual = extra == Additions::kResidual || extra == Additions::kBiasAndResidual;
  if (has_residual && types.out != DType::kF32) return;
  const DType product = types.a == DType::kF32 ? types.b : types.a;
  TestBackend ops(kind);
  for (const Product& c : kProducts) {
    CAPTURE(kind.name, to_string(types.a), to_string(types.b), to_string(types.out), int(extra),
            c.m, c.n, c.k);
    HalfArray a(random_floats(c.m * c.k, 1), types.a), b(random_floats(c.k * c.n, 2), types.b);
    HalfArray bias(random_floats(c.n, 3), types.bias), out(random_floats(c.m * c.n, 4), types.out);
    Floats residual = random_floats(c.m * c.n, 5);
    Values expected = product_of(c, rounded(a.floats(), product), rounded(b.floats(), product));
    for (size_t i = 0; i < expected.size(); ++i) {
      if (extra == Additions::kAccumulate) expected[i] += out.floats()[i];
      if (has_bias) expected[i] += bias.floats()[i % c.n];
      if (has_residual) expected[i] += residual[i];
    }
    MatmulOptions options{.transpose_a = c.transpose_a,
                          .transpose_b = c.transpose_b,
                          .accumulate = extra == Additions::kAccumulate};
    if (has_bias) options.bias = bias.tensor({c.n});
    if (has_residual) options.residual = tensor_of(residual, {c.m, c.n});
    ops->matmul(out.tensor({c.m, c.n}), a.tensor(c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}),
                b.tensor(c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n}), options);
    CHECK(distance_in_eps(out.floats(), expected, 1) < tolerance(c, types.out, has_bias));
  }
}

TEST_CASE("a product may be added to its own output as a residual", "[kernels]") {
  const auto kind = GENERATE(from_range(device_kinds()));
  TestBackend ops(kind);
  const Product c = {9, 20, 33, false, false};
  Floats a = random_floats(c.m * c.k, 1), b = random_floats(c.k * c.n, 2);
  Floats out = random_floats(c.m * c.n, 3);
  Values expected = product_of(c, a, b);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += out[i];
  const Tensor stream = tensor_of(out, {c.m, c.n});
  ops->matmul(stream, tensor_of(a, {c.m, c.k}), tensor_of(b, {c.k, c.n}), {.residual = stream});
  CHECK(distance_in_eps(out, expected, 1) < tolerance(c, DType::kF32));
}

}  // namespace
}  // namespace gxp
