// cuda_bench [--json] [--ceilings | --sweep]: how fast one GPU copies, multiplies and does what a
// training step is made of, each beside the ceiling that the same run measured: the rate of a plain
// copy (bytes read and written) or of a large product in bf16. Inputs are random; a figure is a
// median (timing.h). A row is printed as soon as it is measured (--json: an object a line); what
// fails is a row with its error, and the next is measured unless the GPU has failed as a whole.
// --ceilings stops after the copy and the products. --sweep times choices instead: slices of cuDNN's
// workspace, a GELU on the way out of a product or after it, and cuBLASLt's algorithms.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda/gemm/cublas_products.h"
#include "kernels/cuda/gemm/cuda_float8.h"
#include "kernels/cuda/quantize_launch.h"
#include "kernels/cuda/table/cuda_ops.h"
#include "kernels/cuda/timing.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

constexpr DType kBF16 = DType::kBF16;
constexpr DType kF32 = DType::kF32;

struct Sizes {
  const char* name;
  size_t rows, positions, hidden, heads, mlp, vocabulary;
  bool in_float8;  // is timed so as well
  [[nodiscard]] size_t tokens() const { return rows * positions; }
};
constexpr std::array kModels = {Sizes{"124M", 16, 1024, 768, 12, 3072, 50304, false},
                                Sizes{"774M", 8, 1024, 1280, 20, 5120, 50304, false},
                                Sizes{"1.5B", 8, 1024, 1600, 25, 6400, 50304, true},
                                Sizes{"8B", 2, 4096, 4096, 32, 14336, 128256, true}};

struct Result {
  std::string what;
  double seconds;
  double flops, bytes;  // the larger part of its ceiling counts
};

class Bench {
 public:
  explicit Bench(bool as_json)
      : as_json_(as_json),
        device_(make_cuda_device(0)),
        stream_(device_->make_stream("bench")),
        ops_(make_cuda_ops(*stream_, *device_, {.gemm_cache = cache_path()})),
        queue_(*stream_, *device_),
        codes_(queue_, cache_path()) {}

  void run() {
    ceilings();
    const bool has_float8 = compute_capability(0) >= ComputeCapability{8, 9};
    for (const Sizes& sizes : kModels) {
      const std::string name = sizes.name;
      group(name + " products", [&] { products(sizes); });
      if (sizes.in_float8 && has_float8) group(name + " fp8", [&] { float8(sizes); });
      group(name + " attention", [&] { attention(sizes); });
      group(name + " passes", [&] { rows(sizes); });
    }
    group("updates", [&] { updates(); });
    group("codecs", [&] { codecs(); });
  }

  void sweep() {
    ceilings();
    for (Sizes sizes : {kModels[0], kModels[2]}) {
      sizes.rows *= 2;  // as they are trained (bench/gpu/training.py)
      group(std::string(sizes.name) + " slices", [&] { slices(sizes); });
      group(std::string(sizes.name) + " epilogues", [&] { ends(sizes); });
    }
  }

  void ceilings() {
    if (!as_json_) {
      fmt::print("{}\n{:<44}{:>10}{:>11}{:>11}{:>9}\n", device_->description(), "", "us", "TFLOP/s",
                 "GB/s", "ceiling");
    }
    group("copy", [&] { copy(); });
    group("products of 8192^3", [&] {
      multiply("product of 8192^3, bf16", {8192, 8192, 8192}, kBF16, kBF16, {});
      multiply("product of 8192^3, f32", {8192, 8192, 8192}, kF32, kF32, {});
    });
  }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  static std::string cache_path() {
    const char* const path = std::getenv("GXP_GEMM_CACHE");
    return path == nullptr ? "" : path;
  }

  // Random values in (-1, 1).
  Tensor tensor(const Shape& shape, DType dtype) {
    Buffer& buffer = buffers_.emplace_back(
        device_->allocate(shape.count() * size_of(dtype), MemoryKind::kWorkspace));
    const Tensor made(buffer.memory(), dtype, shape);
    if (random_.empty()) fill_random();
    const size_t pattern = random_.size();
    for (size_t begin = 0; begin < shape.count(); begin += pattern) {
      const size_t count = std::min(pattern, shape.count() - begin);
      const Tensor to(made.memory.slice(begin * size_of(dtype), count * size_of(dtype)), dtype,
                      Shape{count});
      ops_->convert(to,
                    Tensor(noise_.memory().slice(0, count * sizeof(float)), kF32, Shape{count}));
    }
    return made;
  }

  void fill_random() {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    random_.resize(size_t{1} << 22);
    for (float& value : random_) value = uniform(random);
    noise_ = device_->allocate(random_.size() * sizeof(float), MemoryKind::kWorkspace);
    device_->copy(noise_.memory(), memory_of(random_));
  }

  // i32 below `below`.
  Tensor indices(const Shape& shape, size_t below) {
    std::mt19937 random(2);
    std::vector<int32_t> values(shape.count());
    for (int32_t& value : values) value = int32_t(random() % below);
    Buffer& buffer = buffers_.emplace_back(
        device_->allocate(values.size() * sizeof(int32_t), MemoryKind::kWorkspace));
    device_->copy(buffer.memory(), memory_of(values));
    return {buffer.memory(), DType::kI32, shape};
  }

  // What cannot be allocated or queued costs the rest of its group. Throws the error that ended the
  // GPU's context, for nothing can be measured after it.
  void group(const std::string& what, const std::function<void()>& rows) {
    try {
      rows();
    } catch (const Error& error) {
      report_failure(what, error);
      if (cudaDeviceSynchronize() != cudaSuccess) throw;
    }
    buffers_.clear();
  }

  void time(const std::string& what, double flops, double bytes,
            const std::function<void()>& start) {
    try {
      const std::array<std::function<void()>, 1> only = {start};
      const double seconds = double(times_in_turn(native_stream(*stream_), only)[0]) / 1e3;
      report({what, seconds, flops, bytes});
    } catch (const Error& error) {
      report_failure(what, error);
      if (cudaDeviceSynchronize() != cudaSuccess) throw;
    }
  }

  void report(const Result& r) {
    const double flops = r.flops / r.seconds;
    const double bytes = r.bytes / r.seconds;
    // The first copy and the first product are the ceilings.
    if (bytes > 0 && copy_rate_ == 0) copy_rate_ = bytes;
    if (flops > 0 && product_rate_ == 0) product_rate_ = flops;
    const double share =
        std::max(flops > 0 ? flops / product_rate_ : 0, bytes > 0 ? bytes / copy_rate_ : 0);
    if (as_json_) {
      print_line({{"what", r.what},
                  {"seconds", r.seconds},
                  {"flops_per_s", flops},
                  {"bytes_per_s", bytes},
                  {"share_of_ceiling", share}});
    } else {
      fmt::print("{:<44}{:>10.1f}{:>11.1f}{:>11.0f}{:>8.0f}%\n", r.what, r.seconds * 1e6,
                 flops / 1e12, bytes / 1e9, 100 * share);
      std::fflush(stdout);
    }
  }

  void report_failure(const std::string& what, const Error& error) {
    failed_ = true;
    if (as_json_)
      print_line({{"what", what}, {"error", error.what()}});
    else
      fmt::print("{:<44} {}\n", what, error.what());
  }

  static void print_line(const nlohmann::ordered_json& json) {
    fmt::print("{}\n", json.dump());
    std::fflush(stdout);
  }

  void copy() {
    const size_t bytes = size_t{1} << 30;
    const Tensor from = tensor({bytes / 4}, kF32), to = tensor({bytes / 4}, kF32);
    time("copy of 1 GiB", 0, 2 * double(bytes), [&] {
      cudaMemcpyAsync(to.memory.data, from.memory.data, bytes, cudaMemcpyDeviceToDevice,
                      native_stream(*stream_));
    });
  }

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
      buffers_.clear();
    };
    layer("qkv", s.hidden, 3 * s.hidden);
    layer("mlp up", s.hidden, s.mlp);
    multiply(fmt::format("{} logits of 2048", s.name), {2048, s.vocabulary, s.hidden}, kBF16, kBF16,
             {.transpose_b = true});
    buffers_.clear();
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
    buffers_.clear();
  }

  // Reads x twice, for its largest value and for the codes.
  void make_codes(const std::string& what, const Tensor& x, Float8Ways ways) {
    const double each = 4 + double(ways.as_stored) + double(ways.transposed);
    time(what, 0, each * double(x.count()), [&] {
      std::byte* at = queue_.scratch(float8_bytes(x, ways));
      make_float8(queue_, at, x, Float8::kE4M3, ways);
    });
  }

  void multiply_codes(const std::string& what, const Tensor& in, const Tensor& weight,
                      const Tensor& out) {
    const Float8Ways in_ways{.as_stored = true};
    const Float8Ways weight_ways{.transposed = true};
    std::byte* const workspace =
        queue_.scratch(CublasProducts::kWorkspaceBytes + float8_bytes(in, in_ways) +
                       float8_bytes(weight, weight_ways));
    std::byte* at = workspace + CublasProducts::kWorkspaceBytes;
    const Float8Matrix a = make_float8(queue_, at, in, Float8::kE4M3, in_ways);
    const Float8Matrix b = make_float8(queue_, at, weight, Float8::kE4M3, weight_ways);
    const Product product{.m = in.shape.rows(),
                          .n = weight.shape.columns(),
                          .k = in.shape.columns(),
                          .transpose_a = false,
                          .transpose_b = true,
                          .adds = false,
                          .end = ProductEnd::kPlain,
                          .operands = DType::kU8,
                          .out = kBF16,
                          .alignments = {64, 64, 64, 64},
                          .float8 = operands_of_forward(true)};
    const ProductPlaces places{.a = a.as_stored,
                               .b = b.transposed,
                               .c = out.memory.data,
                               .bias = nullptr,
                               .argument = nullptr,
                               .out = out.memory.data,
                               .workspace = workspace,
                               .a_factor = a.factor,
                               .b_factor = b.factor};
    const double flops = 2 * double(product.m) * double(product.n) * double(product.k);
    time(what, flops, 0, [&] { codes_.multiply(product, places); });
  }

  void attention(const Sizes& s) {
    const Shape shape = {s.rows, s.positions, s.hidden};
    const Tensor qkv = tensor({s.rows, s.positions, 3 * s.hidden}, kBF16);
    const Tensor dqkv = tensor({s.rows, s.positions, 3 * s.hidden}, kBF16);
    const Tensor out = tensor(shape, kBF16), dout = tensor(shape, kBF16);
    const Tensor lse = tensor({s.rows, s.heads, s.positions}, kF32);
    const Tensor sums = tensor({s.rows, s.heads, s.positions}, kF32);
    // Two products of T x T x D, causal: half of them.
    const double flops = 2 * double(s.tokens()) * double(s.positions) * double(s.hidden);
    const auto both = [&](const char* by, Ops& ops) {
      time(fmt::format("{} attention forward{}", s.name, by), flops, 0,
           [&] { ops.attention_forward(out, lse, qkv, int(s.heads)); });
      time(fmt::format("{} attention backward{}", s.name, by), 2.5 * flops, 0,
           [&] { ops.attention_backward(dqkv, sums, dout, qkv, out, lse, int(s.heads)); });
    };
    both("", *ops_);
    // Made for this size alone: its workspace is freed after it.
    group(std::string(s.name) + " attention by cuDNN", [&] {
      both(", cuDNN", *make_cuda_ops(*stream_, *device_, {.attention = AttentionBy::kCudnn}));
      both(", cuDNN, any order", *make_cuda_ops(*stream_, *device_,
                                                {.attention = AttentionBy::kCudnn,
                                                 .cudnn_slicing = {.order = SumOrder::kAny}}));
    });
  }

  // Backward by cuDNN in slices of a batch.
  void slices(const Sizes& s) {
    const Shape shape = {s.rows, s.positions, s.hidden};
    const Tensor qkv = tensor({s.rows, s.positions, 3 * s.hidden}, kBF16);
    const Tensor dqkv = tensor({s.rows, s.positions, 3 * s.hidden}, kBF16);
    const Tensor out = tensor(shape, kBF16), dout = tensor(shape, kBF16);
    const Tensor lse = tensor({s.rows, s.heads, s.positions}, kF32);
    const Tensor sums = tensor({s.rows, s.heads, s.positions}, kF32);
    const double flops = 5 * double(s.tokens()) * double(s.positions) * double(s.hidden);
    for (const size_t mib : {32, 64, 128, 256, 1024}) {
      const std::string what = fmt::format("{} attention backward, slices of {} MiB", s.name, mib);
      try {
        const auto ops = make_cuda_ops(
            *stream_, *device_,
            {.attention = AttentionBy::kCudnn, .cudnn_slicing = {.most_bytes = mib << 20}});
        time(what, flops, 0,
             [&] { ops->attention_backward(dqkv, sums, dout, qkv, out, lse, int(s.heads)); });
      } catch (const Error& error) {
        report_failure(what, error);
      }
    }
    buffers_.clear();
  }

  // The MLP's GELU, its slope and its bias's gradient, fused and apart, and the spread of their
  // products' algorithms.
  void ends(const Sizes& s) {
    const size_t n = s.tokens(), c = s.hidden, m = s.mlp;
    const Tensor in = tensor({n, c}, kBF16), weight = tensor({c, m}, kBF16);
    const Tensor back = tensor({m, c}, kBF16), bias = tensor({m}, kBF16);
    const Tensor x = tensor({n, m}, kBF16), out = tensor({n, m}, kBF16);
    const double flops = 2 * double(n) * double(c) * double(m);
    const std::string name = s.name;
    std::byte* const workspace = queue_.scratch(CublasProducts::kWorkspaceBytes);
    Product product{n, m, c, false, false, false, ProductEnd::kBiasGelu, kBF16, kBF16, {}};
    product.alignments = {64, 64, 16, 64};
    ProductPlaces places{in.memory.data, weight.memory.data, out.memory.data, bias.memory.data,
                         x.memory.data,  out.memory.data,    workspace};
    end(name + " mlp up, gelu", flops, product, places, {}, [&] {
      ops_->matmul(x, in, weight, {.bias = bias});
      ops_->gelu_forward(out, x);
    });
    product.end = ProductEnd::kGeluSlope;
    product.transpose_b = true;
    product.alignments = {64, 64, 64, 64};
    places.b = back.memory.data;
    end(
        name + " mlp down dx, gelu's slope", flops, product, places,
        [&] { ops_->gelu_forward(x, x); },
        [&] {
          ops_->matmul(out, in, back, {.transpose_b = true});
          ops_->gelu_backward(out, x, out, x);
        });
    const Tensor dweight = tensor({c, m}, kF32), dbias = tensor({m}, kF32);
    product = {c, m, n, true, false, false, ProductEnd::kBiasGradient, kBF16, kF32, {}};
    product.alignments = {64, 64, 64, 64};
    places = {in.memory.data,      out.memory.data, dweight.memory.data, nullptr, dbias.memory.data,
              dweight.memory.data, workspace};
    end(name + " mlp up dW, bias's gradient", flops, product, places, {}, [&] {
      ops_->matmul(dweight, in, out, {.transpose_a = true});
      ops_->bias_backward(dbias, out);
    });
  }

  void end(const std::string& what, double flops, const Product& product,
           const ProductPlaces& places, const std::function<void()>& after,
           const std::function<void()>& apart) {
    time(what + " apart", flops, 0, apart);
    if (!codes_.knows(product, places)) {
      report_failure(what + " fused", Error(ErrorKind::kUnavailable, "cuBLASLt has no algorithm"));
      return;
    }
    time(what + " fused", flops, 0, [&] {
      codes_.multiply(product, places);
      if (after) after();
    });
    std::vector<float> times = codes_.candidate_times(product, places);
    std::ranges::sort(times);
    for (const auto& [rank, name] :
         {std::pair(size_t{0}, "fastest"), std::pair(times.size() / 2, "middle"),
          std::pair(times.size() - 1, "slowest")})
      if (rank < times.size())
        report({fmt::format("{} product, {} of {}", what, name, times.size()),
                double(times[rank]) / 1e3, flops, 0});
  }

  void rows(const Sizes& s) {
    const size_t n = s.tokens(), c = s.hidden;
    const Tensor x = tensor({n, c}, kF32), dx = tensor({n, c}, kF32);
    const Tensor out = tensor({n, c}, kBF16), weight = tensor({c}, kBF16),
                 bias = tensor({c}, kBF16);
    const Tensor dweight = tensor({c}, kF32), dbias = tensor({c}, kF32);
    const Tensor mean = tensor({n}, kF32), rstd = tensor({n}, kF32);
    const auto each = double(n) * double(c);
    const std::string name = s.name;
    time(name + " layernorm forward", 0, 6 * each,
         [&] { ops_->layernorm_forward(out, mean, rstd, x, weight, bias, 1e-5f); });
    time(name + " layernorm backward", 0, 14 * each,
         [&] { ops_->layernorm_backward(dx, dweight, dbias, out, x, mean, rstd, weight); });
    const Tensor rounded = tensor({n, c}, kBF16), column_sums = tensor({c}, kF32);
    time(name + " layernorm backward, rounded and summed", 0, 16 * each, [&] {
      ops_->layernorm_backward(dx, dweight, dbias, out, x, mean, rstd, weight,
                               {rounded, column_sums});
    });
    time(name + " stream rounded and summed", 0, 6 * each, [&] {
      ops_->round_and_sum({rounded, column_sums}, x);
    });
    const Tensor wide = tensor({n, s.mlp}, kBF16), other = tensor({n, s.mlp}, kBF16);
    const auto wides = double(n) * double(s.mlp);
    time(name + " gelu forward", 0, 4 * wides, [&] { ops_->gelu_forward(other, wide); });
    time(name + " gelu backward", 0, 8 * wides,
         [&] { ops_->gelu_backward(other, wide, other, wide); });
    const Tensor sums = tensor({s.mlp}, kF32);
    time(name + " bias backward", 0, 2 * wides, [&] { ops_->bias_backward(sums, wide); });
    const Tensor logits = tensor({2048, s.vocabulary}, kBF16), losses = tensor({2048}, kF32);
    const Tensor targets = indices({2048}, s.vocabulary);
    time(name + " classifier of 2048", 0, 4 * 2048 * double(s.vocabulary),
         [&] { ops_->classifier(logits, losses, targets, 1e-3f); });
    const Tensor table = tensor({s.vocabulary, c}, kF32),
                 positions = tensor({s.positions, c}, kF32);
    const Tensor tokens = indices({s.rows, s.positions}, s.vocabulary);
    time(name + " embedding backward", 0, 12 * each, [&] {
      ops_->embedding_backward(table, positions, x.reshape({s.rows, s.positions, c}), tokens);
    });
  }

  void updates() {
    const size_t count = 100'000'000;
    const Tensor weights = tensor({count}, kF32), first = tensor({count}, kF32);
    const Tensor second = tensor({count}, kF32), gradients = tensor({count}, kF32);
    ops_->fill(second, 1.0f);
    time("adamw of 100 M", 0, 28 * double(count), [&] {
      ops_->adamw(weights, first, second, gradients, {1e-4, 0.9, 0.95, 1e-8, 0.1, 3, 1.0});
    });
    time("sum of squares of 100 M", 0, 4 * double(count), [&] { ops_->sum_of_squares(gradients); });
    buffers_.clear();
  }

  // Bytes: of f32 read and written, and of what travels.
  void codecs() {
    const size_t count = 100'000'000;
    const Tensor x = tensor({count}, kF32), residual = tensor({count}, kF32);
    const Tensor encoded = tensor({count}, kBF16);
    const cudaStream_t stream = native_stream(*stream_);
    const auto floats = [](const Tensor& t) { return reinterpret_cast<float*>(t.memory.data); };
    for (const auto& [name, format] :
         {std::pair("bf16", WireFormat::kBF16), std::pair("f16", WireFormat::kF16),
          std::pair("int8", WireFormat::kInt8), std::pair("int4", WireFormat::kInt4)}) {
      const CudaWire wire{format, count};
      const auto wires = double(encoded_bytes(format, count));
      std::byte* const out = encoded.memory.data;
      time(fmt::format("encode 100 M as {}", name), 0, 12 * double(count) + wires,
           [&] { launch_encode(stream, wire, out, floats(x), floats(residual)); });
      time(fmt::format("decode and add 100 M of {}", name), 0, 8 * double(count) + wires,
           [&] { launch_decode_and_add(stream, wire, floats(x), out); });
    }
    buffers_.clear();
  }

  bool as_json_;
  bool failed_ = false;  // in a row at least
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Ops> ops_;
  CudaQueue queue_;  // of what is timed without its operation
  CublasProducts codes_;
  std::vector<float> random_;
  Buffer noise_;
  std::vector<Buffer> buffers_;
  double copy_rate_ = 0, product_rate_ = 0;  // 0: not measured
};

int run(int argc, char** argv) {
  if (const Support support = cuda_support(); !support) {
    fmt::print(stderr, "cuda_bench: {}\n", support.reason);
    return 3;
  }
  const std::set<std::string_view> options(argv + 1, argv + argc);
  Bench bench(options.contains("--json"));
  if (options.contains("--sweep"))
    bench.sweep();
  else if (options.contains("--ceilings"))
    bench.ceilings();
  else
    bench.run();
  return bench.failed() ? 5 : 0;
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  try {
    return gxp::run(argc, argv);
  } catch (const gxp::Error& error) {
    fmt::print(stderr, "cuda_bench: {}\n", error.what());
    return 5;
  }
}
