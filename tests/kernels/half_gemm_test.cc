// Products of half types, held against a product of the same values whose operands have one type:
// floats, or for kernels that multiply pairs bf16. tests/kernels/gemm_test.cc has the oracle.
#include <vector>

#include "kernels/cpu/gemm/gemm.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

struct Types {
  DType a, b, c;
};

// Every place for every half type, but two half types in one product.
const std::vector<Types> kTypes = {
    {DType::kBF16, DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16, DType::kBF16},
    {DType::kF32, DType::kBF16, DType::kF32},  {DType::kBF16, DType::kF32, DType::kBF16},
    {DType::kF16, DType::kF16, DType::kF32},   {DType::kF16, DType::kF16, DType::kF16},
    {DType::kF32, DType::kF16, DType::kF16},   {DType::kF16, DType::kF32, DType::kF32},
    {DType::kF32, DType::kF32, DType::kBF16},  {DType::kF32, DType::kF32, DType::kF16}};

struct Case {
  size_t m, n, k;
  bool transpose_a, transpose_b;
};

// Sizes around those of vectors, panels and tiles; and some of more than one block and piece of k.
const std::vector<Case> kCases = {
    {1, 1, 1, false, false},      {3, 5, 7, true, false},        {14, 32, 16, false, true},
    {15, 33, 17, true, true},     {65, 129, 31, true, true},     {40, 47, 0, false, false},
    {100, 63, 129, true, false},  {70, 1000, 800, false, false}, {230, 40, 1537, true, false},
    {45, 3300, 390, false, true}, {33, 50, 2, false, true}};

// A product's operands, and the operands as the product takes them.
struct Operands {
  Operands(const Case& c, const Types& types)
      : product(types.a == DType::kF32 ? types.b : types.a),
        a(random_floats(c.m * c.k + 1, 1), types.a),
        b(random_floats(c.k * c.n + 1, 2), types.b),
        taken_a(rounded(a.floats(), product)),
        taken_b(rounded(b.floats(), product)) {}
  DType product;
  HalfArray a, b;
  Floats taken_a, taken_b;
};

GemmArgs sizes_of(const Case& c) {
  GemmArgs args;
  args.m = c.m, args.n = c.n, args.k = c.k;
  args.transpose_a = c.transpose_a, args.transpose_b = c.transpose_b;
  args.lda = c.transpose_a ? c.m : c.k;
  args.ldb = c.transpose_b ? c.k : c.n;
  args.ldc = c.n;
  return args;
}

void run(const Product& product, int threads, const GemmArgs& args) {
  ThreadPool pool(threads);
  Gemm(pool, product.kernels()).run(args);
}

// What the product is, by one of the same kernel on operands of one type: its bits, where c is f32.
Floats plain_product(const Product& product, const Case& c, const Operands& in,
                     const Floats& bias) {
  const DType type = product.in_pairs() && in.product == DType::kBF16 ? DType::kBF16 : DType::kF32;
  const HalfArray a(in.taken_a, type), b(in.taken_b, type);
  Floats out(c.m * c.n);
  GemmArgs args = sizes_of(c);
  args.a = a.data(), args.a_type = type;
  args.b = b.data(), args.b_type = type;
  args.c = out.data();
  if (!bias.empty()) args.bias = bias.data();
  run(product, 1, args);
  return out;
}

Floats product_of_halves(const Product& product, const Case& c, const Operands& in,
                         const Types& types, const Floats& bias, HalfArray& out, int threads = 2) {
  GemmArgs args = sizes_of(c);
  args.a = in.a.data(), args.a_type = types.a;
  args.b = in.b.data(), args.b_type = types.b;
  args.c = out.data(), args.c_type = types.c;
  if (!bias.empty()) args.bias = bias.data();
  run(product, threads, args);
  return out.floats();
}

// Each once; a product's types are the cases'.
std::vector<Product> kernels_here() {
  std::vector<Product> kernels;
  for (const Product& product : products_here())
    if (product.dtype == DType::kBF16) kernels.push_back(product);
  return kernels;
}

TEST_CASE("a product of half types is the product of its rounded operands, rounded once",
          "[gemm]") {
  const auto [product, types, has_bias, c] = GENERATE(
      from_range(combinations(kernels_here(), kTypes, std::vector<bool>{false, true}, kCases)));
  CAPTURE(product.bf16, to_string(types.a), to_string(types.b), to_string(types.c), c.m, c.n, c.k);
  const Operands in(c, types);
  const Floats bias = has_bias ? random_floats(c.n, 4) : Floats();
  HalfArray out(Floats(c.m * c.n), types.c);
  const Floats expected = rounded(plain_product(product, c, in, bias), types.c);
  CHECK(product_of_halves(product, c, in, types, bias, out) == expected);
}

TEST_CASE("a product is added to a matrix of a half type in f32", "[gemm]") {
  const Product product = GENERATE(from_range(kernels_here()));
  const DType type = GENERATE(DType::kBF16, DType::kF16);
  for (const Case& c : kCases) {
    CAPTURE(product.bf16, to_string(type), c.m, c.n, c.k);
    const Types types = {type, type, type};
    const Operands in(c, types);
    HalfArray out(random_floats(c.m * c.n, 3), type);
    Floats expected = plain_product(product, c, in, {});
    const Floats before = out.floats();
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    GemmArgs args = sizes_of(c);
    args.a = in.a.data(), args.b = in.b.data(), args.c = out.data();
    args.a_type = args.b_type = args.c_type = type;
    args.accumulate = true;
    run(product, 2, args);
    CHECK(out.floats() == rounded(expected, type));
  }
}

TEST_CASE("a product of half types has the same bits with any number of threads", "[gemm]") {
  const auto [product, types, c] =
      GENERATE(from_range(combinations(kernels_here(), kTypes, kCases)));
  const Operands in(c, types);
  HalfArray one(Floats(c.m * c.n), types.c);
  const Floats expected = product_of_halves(product, c, in, types, {}, one, 1);
  for (const int threads : {2, 3}) {
    HalfArray out(Floats(c.m * c.n), types.c);
    CHECK(product_of_halves(product, c, in, types, {}, out, threads) == expected);
  }
}

}  // namespace
}  // namespace gxp
