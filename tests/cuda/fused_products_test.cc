// Which passes over memory the emulated cuBLASLt is spared, and what is done where it refuses.
#include <cublasLt.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/device/cuda_device.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/cuda/on_device.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

constexpr uint32_t kBiasGelu = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
constexpr uint32_t kSlope = CUBLASLT_EPILOGUE_DGELU;
constexpr uint32_t kBiasGradient = CUBLASLT_EPILOGUE_BGRADA;

// How the emulated cuBLASLt behaves while this exists.
struct BehavingCublas {
  explicit BehavingCublas(const EmulatedCublas& behaviour) { emulated_cublas() = behaviour; }
  ~BehavingCublas() { emulated_cublas() = {}; }
};

// A file of this test's own, gone with it.
struct CacheFile {
  CacheFile()
      : folder(std::filesystem::temp_directory_path() / fmt::format("gxp-fused-{}", ::getpid())) {}
  ~CacheFile() { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string path() const { return (folder / "gemm").string(); }
  std::filesystem::path folder;
};

// What a layer of bf16 with a GELU behind it computes, forward and backward.
struct Layer {
  Floats argument, value, gradient, value_again, product;
};

Layer run_layer(size_t columns, const CudaOpsOptions& options = {}) {
  const TestOps backend = make_cuda_test_ops(options);
  const Shape in = {4, 8}, weight = {8, columns}, out = {4, columns};
  HalfArray x(random_floats(32, 1), DType::kBF16), w(random_floats(8 * columns, 2), DType::kBF16);
  HalfArray b(random_floats(columns, 3), DType::kBF16), argument(Floats(4 * columns), DType::kBF16);
  HalfArray value = argument, upstream = x, gradient = argument, back = w, product = argument;
  backend.ops->matmul(product.tensor(out), x.tensor(in), w.tensor(weight),
                      {.bias = b.tensor({columns})});
  backend.ops->linear_gelu({.activated = value.tensor(out),
                            .x = argument.tensor(out),
                            .in = x.tensor(in),
                            .weight = w.tensor(weight),
                            .bias = b.tensor({columns})});
  const Floats x_of_gelu = argument.floats();
  backend.ops->linear_backward({.dx = gradient.tensor(out),
                                .dout = upstream.tensor(in),
                                .in = argument.tensor(out),
                                .weight = back.tensor({columns, 8}),
                                .of_gelu = true});
  return {x_of_gelu, value.floats(), gradient.floats(), argument.floats(), product.floats()};
}

// The same but for roundings to bf16.
void check_near(const Layer& a, const Layer& b) {
  for (const auto member :
       {&Layer::argument, &Layer::value, &Layer::gradient, &Layer::value_again, &Layer::product}) {
    REQUIRE((a.*member).size() == (b.*member).size());
    for (size_t i = 0; i < (a.*member).size(); ++i)
      CHECK((a.*member)[i] == Approx((b.*member)[i]).epsilon(0x1p-6).margin(0x1p-6));
  }
}

int products_with(uint32_t epilogue, size_t columns, const CudaOpsOptions& options = {}) {
  const int before = emulated_products(epilogue);
  run_layer(columns, options);
  return emulated_products(epilogue) - before;
}

TEST_CASE("a GELU and its slope are taken on the way out of a product, where rows allow it") {
  const uint32_t epilogue = GENERATE(kBiasGelu, kSlope);
  CHECK(products_with(epilogue, 16) == 1);
  CHECK(products_with(epilogue, 12) == 0);
}

TEST_CASE("what cuBLASLt has no algorithm for on the way out of a product is done after it") {
  const uint32_t epilogue = GENERATE(uint32_t{CUBLASLT_EPILOGUE_BIAS}, kBiasGelu, kSlope);
  const size_t columns = GENERATE(16, 12);
  CAPTURE(epilogue, columns);
  const Layer fused = run_layer(columns);
  const BehavingCublas behaving({.refused_epilogue = epilogue});
  check_near(run_layer(columns), fused);
  CHECK(products_with(epilogue, columns) == 0);
}

// The gradients of a layer's parameters, stored or added to.
struct Gradients {
  Floats weight, bias;
  int fused;  // products that summed dout's columns
};

Gradients differentiate(bool accumulate, const CudaOpsOptions& options = {},
                        DType upstream = DType::kBF16, bool outputs_first = false) {
  const TestOps backend = make_cuda_test_ops(options);
  const size_t n = 40, k = 12, m = 20;
  HalfArray in(random_floats(n * k, 1), DType::kBF16), w(random_floats(k * m, 2), DType::kBF16);
  HalfArray dout(rounded(random_floats(n * m, 3), DType::kBF16), upstream), dx = in;
  Gradients made{Floats(k * m, 0.5f), Floats(m, 0.5f), -emulated_products(kBiasGradient)};
  const Shape shape = outputs_first ? Shape{m, k} : Shape{k, m};
  backend.ops->linear_backward({.dx = dx.tensor({n, k}),
                                .dweight = tensor_of(made.weight, shape),
                                .dbias = tensor_of(made.bias, {m}),
                                .dout = dout.tensor({n, m}),
                                .in = in.tensor({n, k}),
                                .weight = w.tensor(shape),
                                .accumulate = accumulate,
                                .outputs_first = outputs_first});
  made.fused += emulated_products(kBiasGradient);
  return made;
}

void check_near(const Gradients& a, const Gradients& b) {
  for (const auto member : {&Gradients::weight, &Gradients::bias}) {
    for (size_t i = 0; i < (a.*member).size(); ++i)
      CHECK((a.*member)[i] == Approx((b.*member)[i]).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE("a bias's gradient is summed in the weight's product, or apart where that cannot be") {
  const bool accumulate = GENERATE(false, true);
  const Gradients fused = differentiate(accumulate);
  CHECK(fused.fused == 1);
  const Gradients unrounded = differentiate(accumulate, {}, DType::kF32);
  CHECK(unrounded.fused == 0);
  check_near(unrounded, fused);
  CHECK(differentiate(accumulate, {}, DType::kBF16, true).fused == 0);
  const BehavingCublas behaving({.refused_epilogue = kBiasGradient});
  const Gradients apart = differentiate(accumulate);
  CHECK(apart.fused == 0);
  check_near(apart, fused);
}

TEST_CASE("a bias's gradient that was timed to be slower in the product is summed apart") {
  const CacheFile cache;
  const CudaOpsOptions options = {.gemm_cache = cache.path()};
  const bool accumulate = GENERATE(false, true);
  const Gradients expected = differentiate(accumulate);
  {
    const BehavingCublas behaving({.slow_epilogue = kBiasGradient});
    check_near(differentiate(accumulate, options), expected);  // trials leave no trace
  }
  const Gradients apart = differentiate(accumulate, options);
  CHECK(apart.fused == 0);  // as the cache says
  check_near(apart, expected);
}

TEST_CASE("algorithms that cuBLASLt cannot run are left out") {
  const CacheFile cache;
  const Layer expected = run_layer(16);
  const BehavingCublas behaving(GENERATE(values<EmulatedCublas>(
      {{.first_has_failed = true}, {.first_fails = true}, {.all_fail = true}})));
  if (!emulated_cublas().all_fail) check_near(run_layer(16), expected);
  check_near(run_layer(16, {.gemm_cache = cache.path()}), expected);
  check_near(run_layer(16, {.gemm_cache = cache.path()}), expected);  // as the cache says
}

TEST_CASE("a product whose algorithms all fail is told") {
  const BehavingCublas behaving({.all_fail = true});
  CHECK_THROWS_WITH(run_layer(12), "multiply matrices on a GPU: an error of the emulated cuBLASLt");
}

TEST_CASE("a cache does not remember that a plain product's algorithms all failed") {
  const CacheFile cache;
  const Layer expected = run_layer(12);
  {
    const BehavingCublas behaving({.plain_fail = true});
    CHECK_THROWS_WITH(run_layer(12, {.gemm_cache = cache.path()}),
                      Catch::Contains("an error of the emulated cuBLASLt"));
  }
  check_near(run_layer(12, {.gemm_cache = cache.path()}), expected);
}

// What a product and a layer's backward pass add to a weight's gradient, where the GPU has memory
// for their tensors alone.
Floats add_without_memory(const CudaOpsOptions& options) {
  constexpr size_t kSize = 16;
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const auto ops = make_cuda_ops(*stream, *device, options);
  std::vector<Buffer> buffers;
  const auto tensor = [&](DType dtype, const Shape& shape, float value) {
    buffers.push_back(device->allocate(shape.count() * size_of(dtype), MemoryKind::kWorkspace));
    const Tensor made(buffers.back().memory(), dtype, shape);
    ops->fill(made, value);
    return made;
  };
  const auto half = [&](float value) { return tensor(DType::kBF16, {kSize, kSize}, value); };
  const Tensor sum = tensor(DType::kF32, {kSize, kSize}, 2), bias = tensor(DType::kF32, {kSize}, 0);
  const Tensor x = half(1), y = half(3), dx = half(0);
  ops->matmul(dx, sum, x, {});  // takes scratch memory, for a copy as well
  const emulation::LittleMemory little(0);
  ops->matmul(sum, x, y, {.accumulate = true});
  ops->linear_backward({.dx = dx,
                        .dweight = sum,
                        .dbias = bias,
                        .dout = y,
                        .in = x,
                        .weight = x,
                        .accumulate = true});
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));
  Floats found(kSize * kSize);
  device->copy(memory_of(found), sum.memory);
  return found;
}

TEST_CASE("products that cannot be timed for want of memory are right, and not cached") {
  const CacheFile cache;
  CHECK(add_without_memory({.gemm_cache = cache.path()}) == Floats(256, 2 + 16 * 3 + 16 * 3));
  std::ifstream lines(cache.path());
  for (std::string line; std::getline(lines, line);) {
    CHECK_THAT(line, !Catch::Contains("+ matrix"));
    CHECK_THAT(line, !Catch::Contains("fused"));
  }
}

TEST_CASE("with tf32, products of f32 take 10 bits of fractions, others all, each with its cache") {
  const CacheFile cache;
  const auto multiply = [&](DType type, bool tf32) {
    const TestOps backend = make_cuda_test_ops({.gemm_cache = cache.path(), .tf32 = tf32});
    const Floats factors(64, 1 + 0x1p-10f + 0x1p-12f);
    Floats out(64);
    HalfArray half(factors, type == DType::kF32 ? DType::kBF16 : type);
    const ConstTensor in = type == DType::kF32 ? tensor_of(factors, {8, 8}) : half.tensor({8, 8});
    backend.ops->matmul(tensor_of(out, {8, 8}), in, in, {});
    return out.front();
  };
  CHECK(multiply(DType::kF32, false) > multiply(DType::kF32, true));
  CHECK(multiply(DType::kF32, true) == Approx(8 * (1 + 0x1p-10) * (1 + 0x1p-10)).epsilon(1e-7));
  CHECK(multiply(DType::kBF16, true) == multiply(DType::kBF16, false));
  std::ifstream lines(cache.path());
  int of_tf32 = 0;
  for (std::string line; std::getline(lines, line);)
    of_tf32 += line.find("tf32 to f32") != std::string::npos;
  CHECK(of_tf32 == 1);
}

TEST_CASE("a product that cuBLASLt knows no way for is told") {
  const BehavingCublas behaving({.refused_epilogue = CUBLASLT_EPILOGUE_DEFAULT});
  CHECK_THROWS_WITH(run_layer(12), Catch::Contains("cuBLASLt has no algorithm (an error of"));
}

TEST_CASE("a GELU that was timed to be slower on the way out is taken after the product") {
  const CacheFile cache;
  const CudaOpsOptions options = {.gemm_cache = cache.path()};
  const uint32_t epilogue = GENERATE(kBiasGelu, kSlope);
  {
    const BehavingCublas behaving({.slow_epilogue = epilogue});
    run_layer(16, options);
  }
  CHECK(products_with(epilogue, 16, options) == 0);  // as the cache says
  CHECK(products_with(epilogue, 16) == 1);
}

TEST_CASE("fast sums are of 8-bit products in the forward pass alone, and only on request") {
  const bool wanted = GENERATE(false, true);
  const TestOps backend = make_cuda_test_ops({.float8_fast_sums = wanted});
  HalfArray in(random_floats(16 * 16, 1), DType::kBF16), weight = in, out = in, dx = in;
  Floats dweight(16 * 16);
  const Shape shape = {16, 16};
  int before = emulated_fast_products();
  const auto fast_since = [&] { return std::exchange(before, emulated_fast_products()); };
  backend.ops->matmul(out.tensor(shape), in.tensor(shape), weight.tensor(shape), {});
  backend.ops->matmul(out.tensor(shape), in.tensor(shape), weight.tensor(shape),
                      {.float8 = operands_of_forward(true)});
  CHECK(emulated_fast_products() - fast_since() == (wanted ? 1 : 0));
  backend.ops->linear_backward({.dx = dx.tensor(shape),
                                .dweight = tensor_of(dweight, shape),
                                .dout = out.tensor(shape),
                                .in = in.tensor(shape),
                                .weight = weight.tensor(shape),
                                .float8 = true});
  CHECK(emulated_fast_products() - fast_since() == 0);
}

TEST_CASE("kept codes of a weight are multiplied with, whatever has become of the weight") {
  const TestOps backend = make_cuda_test_ops({});
  const Shape in = {16, 32}, weight = {32, 48}, out = {16, 48};
  HalfArray x(random_floats(16 * 32, 1), DType::kBF16),
      dout(random_floats(16 * 48, 2), DType::kBF16);
  HalfArray w(random_floats(32 * 48, 3), DType::kBF16), lost(Floats(32 * 48), DType::kBF16);
  std::vector<uint8_t> memory(kept_code_bytes(32 * 48));
  const auto products = [&](HalfArray& matrix, bool keeps, bool makes) {
    const KeptCodes codes =
        keeps ? KeptCodes{{memory_of(memory), DType::kU8, Shape{memory.size()}}, makes}
              : KeptCodes{};
    HalfArray y(Floats(16 * 48), DType::kBF16), dx(Floats(16 * 32), DType::kBF16);
    backend.ops->matmul(y.tensor(out), x.tensor(in), matrix.tensor(weight),
                        {.float8 = operands_of_forward(true), .b_codes = codes});
    KeptCodes made = codes;
    made.makes = false;
    backend.ops->linear_backward({.dx = dx.tensor(in),
                                  .dout = dout.tensor(out),
                                  .in = x.tensor(in),
                                  .weight = matrix.tensor(weight),
                                  .float8 = true,
                                  .codes = made});
    return std::pair(y.floats(), dx.floats());
  };
  const auto expected = products(w, false, false);
  CHECK(products(w, true, true) == expected);
  CHECK(products(lost, true, false) == expected);
}

}  // namespace
}  // namespace gxp
