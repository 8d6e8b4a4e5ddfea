#include "kernels/cpu/gemm/gemm.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

struct Shape3 {
  size_t m, n, k;
};

// What the product is asked to do; `gap` elements lie between the rows of every matrix.
struct Variant {
  bool transpose_a = false, transpose_b = false, accumulate = false;
  bool bias = false, residual = false, residual_is_c = false;
  size_t gap = 0;
};

constexpr float kUntouched = 1e30f;

// A product with random operands of `dtype`, and room for its result.
struct Problem {
  Problem(const Shape3& shape, const Variant& variant, DType dtype = DType::kF32)
      : shape(shape),
        variant(variant),
        lda((variant.transpose_a ? shape.m : shape.k) + variant.gap),
        ldb((variant.transpose_b ? shape.k : shape.n) + variant.gap),
        ldc(shape.n + variant.gap),
        a(rounded(random_floats((variant.transpose_a ? shape.k : shape.m) * lda + 1, 1), dtype)),
        b(rounded(random_floats((variant.transpose_b ? shape.n : shape.k) * ldb + 1, 2), dtype)),
        c(random_floats(shape.m * ldc, 3)),
        bias(random_floats(shape.n, 4)),
        residual(random_floats(shape.m * ldc, 5)) {
    for (size_t i = 0; i < shape.m; ++i)
      for (size_t j = shape.n; j < ldc; ++j) c[i * ldc + j] = kUntouched;
  }

  [[nodiscard]] GemmArgs args(Floats& out) const {
    GemmArgs args;
    args.m = shape.m, args.n = shape.n, args.k = shape.k;
    args.lda = lda, args.transpose_a = variant.transpose_a;
    args.ldb = ldb, args.transpose_b = variant.transpose_b;
    args.c = out.data(), args.ldc = ldc, args.accumulate = variant.accumulate;
    if (variant.bias) args.bias = bias.data();
    if (variant.residual) args.residual = residual.data();
    if (variant.residual_is_c) args.residual = out.data();
    return args;
  }

  // By a Gemm of `product`.
  [[nodiscard]] Floats compute(Gemm& gemm, const Product& product) const {
    const HalfArray stored_a(a, product.dtype), stored_b(b, product.dtype);
    Floats out = c;
    GemmArgs call = args(out);
    call.a = stored_a.data(), call.a_type = product.dtype;
    call.b = stored_b.data(), call.b_type = product.dtype;
    gemm.run(call);
    return out;
  }
  [[nodiscard]] Floats compute(const Product& product, int threads) const {
    ThreadPool pool(threads);
    Gemm gemm(pool, product.kernels());
    return compute(gemm, product);
  }

  // |out - exact| <= eps * sum |terms| * sqrt(terms), with a margin of 2: an element is a sum of
  // k products and up to three more values, each with a rounding of at most eps / 2.
  [[nodiscard]] bool element_is_right(const Floats& out, size_t i, size_t j) const {
    double sum = 0, size = 0;
    const auto add = [&](double term) { sum += term, size += std::abs(term); };
    for (size_t p = 0; p < shape.k; ++p)
      add(double(a[variant.transpose_a ? p * lda + i : i * lda + p]) *
          double(b[variant.transpose_b ? j * ldb + p : p * ldb + j]));
    const size_t at = i * ldc + j;
    if (variant.accumulate) add(double(c[at]));
    if (variant.bias) add(double(bias[j]));
    if (variant.residual) add(double(residual[at]));
    if (variant.residual_is_c) add(double(c[at]));
    const double eps = double(std::numeric_limits<float>::epsilon());
    return std::abs(double(out[at]) - sum) <= eps * size * std::sqrt(double(shape.k + 4));
  }

  // The wrong ones of all elements, or of every `step`-th, and of the gaps between rows.
  [[nodiscard]] size_t wrong_elements(const Floats& out, size_t step = 1) const {
    size_t wrong = 0;
    for (size_t at = 0; at < shape.m * shape.n; at += step)
      wrong += !element_is_right(out, at / shape.n, at % shape.n);
    for (size_t i = 0; i < shape.m; ++i)
      for (size_t j = shape.n; j < ldc; ++j) wrong += out[i * ldc + j] != kUntouched;
    return wrong;
  }

  Shape3 shape;
  Variant variant;
  size_t lda, ldb, ldc;
  Floats a, b, c, bias, residual;
};

// Vectors, panels and tiles begin and end around these.
const std::vector<size_t> kOddSizes = {1, 2, 3, 5, 7, 13, 14, 15, 17, 31, 33, 63, 64, 65, 100, 129};

const std::vector<Variant> kVariants = {
    {},
    {.transpose_a = true},
    {.transpose_b = true},
    {.transpose_a = true, .transpose_b = true},
    {.bias = true},
    {.transpose_a = true, .accumulate = true},
    {.residual = true, .gap = 3},
    {.transpose_a = true, .residual_is_c = true, .gap = 1},
    {.transpose_b = true, .bias = true, .residual = true},
    {.transpose_a = true, .transpose_b = true, .accumulate = true, .bias = true, .gap = 17},
};

// Shapes with more than one piece of k, block of columns (AVX-512: above 832 and 384 terms) and
// block of rows; the last piece of k is no whole number of vectors.
const std::vector<Shape3> kLargeShapes = {{70, 1000, 800}, {2100, 40, 390}, {45, 33, 1537}};

TEST_CASE("every product is the one computed in double, within its rounding", "[gemm]") {
  const Product product = GENERATE(from_range(products_here()));
  const Variant variant = GENERATE(from_range(kVariants));
  std::mt19937 random(7);
  const auto size = [&] { return kOddSizes[random() % kOddSizes.size()]; };
  for (int i = 0; i < 40; ++i) {
    const Shape3 shape = {size(), size(), size()};
    const Problem problem(shape, variant, product.dtype);
    CAPTURE(product.bf16, to_string(product.dtype), shape.m, shape.n, shape.k);
    CHECK(problem.wrong_elements(problem.compute(product, 1)) == 0);
  }
}

TEST_CASE("every number of rows and columns of a tile is computed right", "[gemm]") {
  const Product product = GENERATE(from_range(products_here()));
  const bool transposed = GENERATE(false, true);
  for (size_t size = 1; size <= 40; ++size) {
    const Problem by_rows({size, 35, 20}, {.transpose_a = transposed, .transpose_b = transposed},
                          product.dtype);
    const Problem by_columns({3, size, size}, {.transpose_a = transposed, .bias = true},
                             product.dtype);
    CAPTURE(product.bf16, to_string(product.dtype), size, transposed);
    CHECK(by_rows.wrong_elements(by_rows.compute(product, 1)) == 0);
    CHECK(by_columns.wrong_elements(by_columns.compute(product, 1)) == 0);
  }
}

TEST_CASE("products that need several blocks are right", "[gemm]") {
  const auto [product, variant, shape] =
      GENERATE(from_range(combinations(products_here(), kVariants, kLargeShapes)));
  const Problem problem(shape, variant, product.dtype);
  CAPTURE(product.bf16, to_string(product.dtype), shape.m, shape.n, shape.k);
  CHECK(problem.wrong_elements(problem.compute(product, 2), 37) == 0);
}

TEST_CASE("a product has the same bits with any number of threads", "[gemm]") {
  std::vector<Shape3> shapes = kLargeShapes;
  shapes.insert(shapes.end(), {{1, 1, 1}, {2, 129, 33}, {129, 2, 65}, {100, 100, 100}});
  const auto [product, variant, shape] =
      GENERATE_COPY(from_range(combinations(products_here(), kVariants, shapes)));
  const Problem problem(shape, variant, product.dtype);
  CAPTURE(product.bf16, to_string(product.dtype), shape.m, shape.n, shape.k);
  const Floats one = problem.compute(product, 1);
  for (const int threads : {2, 3}) CHECK(problem.compute(product, threads) == one);
}

TEST_CASE("a product over no terms stores what is added to it", "[gemm]") {
  const Product product = GENERATE(from_range(products_here()));
  const Problem plain({20, 40, 0}, {}, product.dtype);
  CHECK(plain.compute(product, 2) == Floats(20 * 40, 0.0f));
  const Problem added({20, 40, 0}, {.accumulate = true, .bias = true, .residual = true},
                      product.dtype);
  CHECK(added.wrong_elements(added.compute(product, 2)) == 0);
}

TEST_CASE("one Gemm serves products of different shapes", "[gemm]") {
  const Product product = GENERATE(from_range(products_here()));
  ThreadPool pool(2);
  Gemm gemm(pool, product.kernels());
  for (const Shape3& shape : {Shape3{40, 50, 60}, Shape3{3, 2, 1}, Shape3{50, 1100, 20},
                              Shape3{0, 5, 5}, Shape3{5, 0, 5}, Shape3{40, 50, 60}}) {
    const Problem problem(shape, {.bias = true}, product.dtype);
    const Floats out = problem.compute(gemm, product);
    CAPTURE(product.bf16, to_string(product.dtype), shape.m, shape.n, shape.k);
    CHECK(problem.wrong_elements(out) == 0);
  }
}

TEST_CASE("infinities and NaNs reach the elements they belong to and no others", "[gemm]") {
  const Product product = GENERATE(from_range(products_here()));
  Problem problem({20, 50, 30}, {}, product.dtype);
  problem.a[7 * problem.lda + 3] = std::numeric_limits<float>::quiet_NaN();
  const Floats out = problem.compute(product, 1);
  for (size_t i = 0; i < 20; ++i)
    for (size_t j = 0; j < 50; ++j) REQUIRE(std::isnan(out[i * 50 + j]) == (i == 7));
}

TEST_CASE("what is left in scratch reaches no product", "[gemm]") {
  const Product product = GENERATE(from_range(products_here()));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ThreadPool pool(1);
  Gemm gemm(pool, product.kernels());
  for (const Variant& variant : kVariants) {
    Problem everything({90, 70, 530}, {}, product.dtype);
    std::fill(everything.a.begin(), everything.a.end(), nan);
    std::fill(everything.b.begin(), everything.b.end(), nan);
    (void)everything.compute(gemm, product);
    const Problem problem({35, 37, 39}, variant, product.dtype);
    CAPTURE(product.bf16, to_string(product.dtype));
    CHECK(problem.wrong_elements(problem.compute(gemm, product)) == 0);
  }
}

}  // namespace
}  // namespace gxp
