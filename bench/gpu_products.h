// Rows of matrix products (gpu_bench.h): through ops.h, and by cuBLASLt alone, to tell what the
// passes around a product cost.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu_bench.h"
#include "kernels/cuda/gemm/cublas_products.h"
#include "kernels/cuda/gemm/cuda_float8.h"

namespace gxp {

class ProductBench : public GpuBench {
 public:
  explicit ProductBench(bool as_json)
      : GpuBench(as_json), queue_(*stream_, *device_), products_(queue_, cache_path()) {}

 protected:
  // out(m, n) with a sum over k.
  struct Mnk {
    size_t m, n, k;
  };
  void multiply(const std::string& what, const Mnk& s, DType operands, DType out,
                const MatmulOptions& options) {
    const Tensor a = tensor(options.transpose_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, operands);
    const Tensor b = tensor(options.transpose_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, operands);
    const Tensor c = tensor({s.m, s.n}, out);
    const double flops = 2 * double(s.m) * double(s.n) * double(s.k);
    time(what, flops, 0, [&] { ops_->matmul(c, a, b, options); });
  }

  void products(const Sizes& s) {
    const auto layer = [&](const char* name, size_t in, size_t out) {
      const std::string what = fmt::format("{} {}", s.name, name);
      multiply(what + " forward", {s.tokens(), out, in}, kBF16, kBF16, {});
      multiply(what + " dx", {s.tokens(), in, out}, kBF16, kBF16, {.transpose_b = true});
      multiply(what + " dW", {in, out, s.tokens()}, kBF16, kF32,
               {.transpose_a = true, .accumulate = true});
      free_tensors();
    };
    layer("qkv", s.hidden, 3 * s.hidden);
    layer("mlp up", s.hidden, s.mlp);
    multiply(fmt::format("{} logits of 2048", s.name), {2048, s.vocabulary, s.hidden}, kBF16, kBF16,
             {.transpose_b = true});
  }

  // The MLP's first layer: what its operands' codes take, their product alone, and all together.
  void float8(const Sizes& s) {
    const size_t n = s.tokens(), k = s.hidden, m = s.mlp;
    const Tensor in = tensor({n, k}, kBF16), weight = tensor({k, m}, kBF16);
    const Tensor out = tensor({n, m}, kBF16), dweight = tensor({k, m}, kF32);
    const double flops = 2 * double(n) * double(k) * double(m);
    const std::string name = s.name;
    make_codes(name + " fp8 codes of in", in, {.as_stored = true});
    make_codes(name + " fp8 codes of weight", weight, {.transposed = true});
    make_codes(name + " fp8 codes of dout, both", out, {.as_stored = true, .transposed = true});
    multiply_codes(name + " mlp up fp8, product alone", in, weight, out);
    const MatmulOptions options{.float8 = operands_of_forward(true)};
    time(name + " mlp up forward fp8", flops, 0, [&] { ops_->matmul(out, in, weight, options); });
    const LinearBackward layer{.dx = tensor({n, k}, kBF16),
                               .dweight = dweight,
                               .dout = out,
                               .in = in,
                               .weight = weight,
                               .accumulate = true,
                               .float8 = true};
    time(name + " mlp up dx and dW fp8", 2 * flops, 0, [&] { ops_->linear_backward(layer); });
  }

  // The MLP's GELU, its slope and its bias's gradient, fused and apart, and the spread of their
  // products' algorithms.
  void epilogues(const Sizes& s) {
    gelu(s);
    gelu_slope(s);
    bias_gradient(s);
  }

 private:
  // Reads x twice, for its largest value and for the codes.
  void make_codes(const std::string& what, const Tensor& x, Float8Layouts layouts) {
    const double each = 4 + double(layouts.as_stored) + double(layouts.transposed);
    time(what, 0, each * double(x.count()), [&] {
      std::byte* at = queue_.scratch(float8_bytes(x, layouts));
      make_float8(queue_, at, x, Float8::kE4M3, layouts);
    });
  }

  void multiply_codes(const std::string& what, const Tensor& in, const Tensor& weight,
                      const Tensor& out) {
    const Float8Layouts in_layouts{.as_stored = true};
    const Float8Layouts weight_layouts{.transposed = true};
    std::byte* const workspace =
        queue_.scratch(CublasProducts::kWorkspaceBytes + float8_bytes(in, in_layouts) +
                       float8_bytes(weight, weight_layouts));
    std::byte* at = workspace + CublasProducts::kWorkspaceBytes;
    const Float8Matrix a = make_float8(queue_, at, in, Float8::kE4M3, in_layouts);
    const Float8Matrix b = make_float8(queue_, at, weight, Float8::kE4M3, weight_layouts);
    Product product = product_of({in.shape.rows(), weight.shape.columns(), in.shape.columns()});
    product.transpose_b = true;
    product.operands = DType::kU8;
    product.float8 = operands_of_forward(true);
    const ProductPointers pointers{.a = a.as_stored,
                                   .b = b.transposed,
                                   .c = out.memory.data,
                                   .bias = nullptr,
                                   .argument = nullptr,
                                   .out = out.memory.data,
                                   .workspace = workspace,
                                   .a_factor = a.factor,
                                   .b_factor = b.factor};
    const double flops = 2 * double(product.m) * double(product.n) * double(product.k);
    time(what, flops, 0, [&] { products_.multiply(product, pointers); });
  }

  // Of bf16 matrices, neither transposed.
  static Product product_of(const Mnk& s, ProductEnd end = ProductEnd::kPlain) {
    return {.m = s.m,
            .n = s.n,
            .k = s.k,
            .transpose_a = false,
            .transpose_b = false,
            .adds = false,
            .end = end,
            .operands = kBF16,
            .out = kBF16,
            .alignments = {64, 64, 64, 64}};
  }
  ProductPointers pointers_of(const Tensor& a, const Tensor& b, const Tensor& out,
                              const Tensor& argument) {
    return {.a = a.memory.data,
            .b = b.memory.data,
            .c = out.memory.data,
            .bias = nullptr,
            .argument = argument.memory.data,
            .out = out.memory.data,
            .workspace = queue_.scratch(CublasProducts::kWorkspaceBytes)};
  }

  // A product whose epilogue is timed in two ways.
  struct Epilogue {
    std::string what;
    Product product;
    ProductPointers pointers;
    std::function<void()> apart;       // the product, then kernels
    std::function<void()> after = {};  // what the fused product leaves to a kernel
  };

  void compare(const Epilogue& epilogue) {
    const Product& product = epilogue.product;
    const std::string& what = epilogue.what;
    const double flops = 2 * double(product.m) * double(product.n) * double(product.k);
    time(what + " apart", flops, 0, epilogue.apart);
    if (!products_.knows(product, epilogue.pointers)) {
      report_failure(what + " fused", Error(ErrorKind::kUnavailable, "cuBLASLt has no algorithm"));
      return;
    }
    time(what + " fused", flops, 0, [&] {
      products_.multiply(product, epilogue.pointers);
      if (epilogue.after) epilogue.after();
    });
    std::vector<float> times = products_.candidate_times(product, epilogue.pointers);
    std::ranges::sort(times);
    for (const auto& [rank, name] :
         {std::pair(size_t{0}, "fastest"), std::pair(times.size() / 2, "middle"),
          std::pair(times.size() - 1, "slowest")})
      if (rank < times.size())
        report({fmt::format("{} product, {} of {}", what, name, times.size()),
                double(times[rank]) / 1e3, flops, 0});
  }

  // out = gelu(x), x(N, M) = in(N, C) weight(C, M) + bias.
  void gelu(const Sizes& s) {
    const size_t n = s.tokens(), c = s.hidden, m = s.mlp;
    const Tensor in = tensor({n, c}, kBF16), weight = tensor({c, m}, kBF16);
    const Tensor bias = tensor({m}, kBF16), x = tensor({n, m}, kBF16), out = tensor({n, m}, kBF16);
    Product product = product_of({n, m, c}, ProductEnd::kBiasGelu);
    product.alignments[2] = 16;
    ProductPointers pointers = pointers_of(in, weight, out, x);
    pointers.bias = bias.memory.data;
    compare({.what = fmt::format("{} mlp up, gelu", s.name),
             .product = product,
             .pointers = pointers,
             .apart = [&] {
               ops_->matmul(x, in, weight, {.bias = bias});
               ops_->activation_forward(Activation::kGeluTanh, out, x);
             }});
  }

  // dx(N, M) = dout(N, C) weight(M, C)' * gelu'(x); then x becomes gelu(x).
  void gelu_slope(const Sizes& s) {
    const size_t n = s.tokens(), c = s.hidden, m = s.mlp;
    const Tensor dout = tensor({n, c}, kBF16), weight = tensor({m, c}, kBF16);
    const Tensor x = tensor({n, m}, kBF16), dx = tensor({n, m}, kBF16);
    Product product = product_of({n, m, c}, ProductEnd::kGeluSlope);
    product.transpose_b = true;
    compare({.what = fmt::format("{} mlp down dx, gelu's slope", s.name),
             .product = product,
             .pointers = pointers_of(dout, weight, dx, x),
             .apart =
                 [&] {
                   ops_->matmul(dx, dout, weight, {.transpose_b = true});
                   ops_->activation_backward(Activation::kGeluTanh, dx, x, dx, x);
                 },
             .after = [&] { ops_->activation_forward(Activation::kGeluTanh, x, x); }});
  }

  // dweight(C, M) = in(N, C)' dout(N, M), and dbias(M) the sums of dout's columns.
  void bias_gradient(const Sizes& s) {
    const size_t n = s.tokens(), c = s.hidden, m = s.mlp;
    const Tensor in = tensor({n, c}, kBF16), dout = tensor({n, m}, kBF16);
    const Tensor dweight = tensor({c, m}, kF32), dbias = tensor({m}, kF32);
    Product product = product_of({c, m, n}, ProductEnd::kBiasGradient);
    product.transpose_a = true;
    product.out = kF32;
    compare({.what = fmt::format("{} mlp up dW, bias's gradient", s.name),
             .product = product,
             .pointers = pointers_of(in, dout, dweight, dbias),
             .apart = [&] {
               ops_->matmul(dweight, in, dout, {.transpose_a = true});
               ops_->bias_backward(dbias, dout);
             }});
  }

  CudaQueue queue_;  // of what is timed without its operation
  CublasProducts products_;
};

}  // namespace gxp
