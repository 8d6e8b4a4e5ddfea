// cuda_bench [--json] [--ceilings | --sweep]: how fast one GPU copies, multiplies and runs the
// kernels of a training step, each beside the ceiling that the same run measured (gpu_bench.h).
// --ceilings stops after the copy and the large products. --sweep times choices instead: slices of
// cuDNN's workspace, a GELU fused into a product or after it, and cuBLASLt's algorithms.
// Exit code: 3 without a GPU, 5 if a row failed.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/gpu_products.h"
#include "kernels/cuda/quantize_launch.h"
#include "lib/device/cuda_device.h"

namespace gxp {
namespace {

constexpr std::array kModels = {Sizes{"124M", 16, 1024, 768, 12, 3072, 50304, false},
                                Sizes{"774M", 8, 1024, 1280, 20, 5120, 50304, false},
                                Sizes{"1.5B", 8, 1024, 1600, 25, 6400, 50304, true},
                                Sizes{"8B", 2, 4096, 4096, 32, 14336, 128256, true}};

class CudaBench : public ProductBench {
 public:
  using ProductBench::ProductBench;

  void run() {
    ceilings();
    const bool has_float8 = compute_capability(0) >= ComputeCapability{8, 9};
    for (const Sizes& sizes : kModels) {
      const std::string name = sizes.name;
      group(name + " products", [&] { products(sizes); });
      if (sizes.in_float8 && has_float8) group(name + " fp8", [&] { float8(sizes); });
      group(name + " attention", [&] { attention(sizes); });
      group(name + " passes", [&] {
        norms(sizes);
        activations(sizes);
        vocabulary(sizes);
      });
    }
    group("updates", [&] { updates(); });
    group("codecs", [&] { codecs(); });
  }

  void sweep() {
    ceilings();
    for (Sizes sizes : {kModels[0], kModels[2]}) {
      sizes.rows *= 2;  // as they are trained (bench/gpu/training.py)
      group(std::string(sizes.name) + " slices", [&] { slices(sizes); });
      group(std::string(sizes.name) + " epilogues", [&] { epilogues(sizes); });
    }
  }

  void ceilings() {
    print_head();
    group("copy", [&] { copy(); });
    group("products of 8192^3", [&] {
      multiply("product of 8192^3, bf16", {8192, 8192, 8192}, kBF16, kBF16, {});
      multiply("product of 8192^3, f32", {8192, 8192, 8192}, kF32, kF32, {});
    });
  }

 private:
  void copy() {
    const size_t bytes = size_t{1} << 30;
    const Tensor from = tensor({bytes / 4}, kF32), to = tensor({bytes / 4}, kF32);
    time("copy of 1 GiB", 0, 2 * double(bytes), [&] {
      cudaMemcpyAsync(to.memory.data, from.memory.data, bytes, cudaMemcpyDeviceToDevice,
                      native_stream(*stream_));
    });
  }

  // What both passes of attention read and write, in bf16.
  struct AttentionTensors {
    Tensor qkv, dqkv, out, dout, lse, sums;
  };
  AttentionTensors attention_tensors(const Sizes& s) {
    const Shape stream = {s.rows, s.positions, s.hidden};
    const Shape all_heads = {s.rows, s.positions, 3 * s.hidden};
    const Shape of_rows = {s.rows, s.heads, s.positions};
    return {.qkv = tensor(all_heads, kBF16),
            .dqkv = tensor(all_heads, kBF16),
            .out = tensor(stream, kBF16),
            .dout = tensor(stream, kBF16),
            .lse = tensor(of_rows, kF32),
            .sums = tensor(of_rows, kF32)};
  }
  template <class AnyTensor>
  static GroupedHeads<AnyTensor> packed(const AnyTensor& all, const Sizes& s) {
    return {all, all, all, int(s.heads), int(s.heads), HeadLayout::kBlocks};
  }
  // Two products of T x T x D, causal: half of them.
  static double forward_flops(const Sizes& s) {
    return 2 * double(s.tokens()) * double(s.positions) * double(s.hidden);
  }
  void attention_backward(const std::string& what, const Sizes& s, const AttentionTensors& t,
                          Ops& ops) {
    time(what, 2.5 * forward_flops(s), 0, [&] {
      ops.attention_backward(packed(t.dqkv, s), t.sums, t.dout, packed(ConstTensor(t.qkv), s),
                             t.out, t.lse);
    });
  }

  void attention(const Sizes& s) {
    const AttentionTensors t = attention_tensors(s);
    const auto both = [&](const char* by, Ops& ops) {
      time(fmt::format("{} attention forward{}", s.name, by), forward_flops(s), 0,
           [&] { ops.attention_forward(t.out, t.lse, packed(ConstTensor(t.qkv), s)); });
      attention_backward(fmt::format("{} attention backward{}", s.name, by), s, t, ops);
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
    const AttentionTensors t = attention_tensors(s);
    for (const size_t mib : {32, 64, 128, 256, 1024}) {
      const std::string what = fmt::format("{} attention backward, slices of {} MiB", s.name, mib);
      try {
        const auto ops = make_cuda_ops(
            *stream_, *device_,
            {.attention = AttentionBy::kCudnn, .cudnn_slicing = {.most_bytes = mib << 20}});
        attention_backward(what, s, t, *ops);
      } catch (const Error& error) {
        report_failure(what, error);
      }
    }
  }

  // What reads and writes the stream: bytes of each pass, per element.
  void norms(const Sizes& s) {
    const Shape stream = {s.tokens(), s.hidden}, parameters = {s.hidden}, of_rows = {s.tokens()};
    const Tensor out = tensor(stream, kBF16), bias = tensor(parameters, kBF16);
    const Tensor mean = tensor(of_rows, kF32), rstd = tensor(of_rows, kF32);
    NormBackward norm{.dx = tensor(stream, kF32),
                      .dweight = tensor(parameters, kF32),
                      .dbias = tensor(parameters, kF32),
                      .dout = out,
                      .x = tensor(stream, kF32),
                      .mean = mean,
                      .rstd = rstd,
                      .weight = tensor(parameters, kBF16)};
    const auto elements = double(stream.count());
    const std::string name = s.name;
    time(name + " layernorm forward", 0, 6 * elements,
         [&] { ops_->layernorm_forward(out, mean, rstd, norm.x, norm.weight, bias, 1e-5f); });
    time(name + " layernorm backward", 0, 14 * elements, [&] { ops_->layernorm_backward(norm); });
    norm.also = {tensor(stream, kBF16), tensor(parameters, kF32)};
    time(name + " layernorm backward, rounded and summed", 0, 16 * elements,
         [&] { ops_->layernorm_backward(norm); });
    time(name + " stream rounded and summed", 0, 6 * elements,
         [&] { ops_->round_and_sum(norm.also, norm.x); });
  }

  void activations(const Sizes& s) {
    const Tensor wide = tensor({s.tokens(), s.mlp}, kBF16);
    const Tensor other = tensor({s.tokens(), s.mlp}, kBF16), sums = tensor({s.mlp}, kF32);
    const auto elements = double(wide.count());
    const std::string name = s.name;
    time(name + " gelu forward", 0, 4 * elements,
         [&] { ops_->activation_forward(Activation::kGeluTanh, other, wide); });
    time(name + " gelu backward", 0, 8 * elements,
         [&] { ops_->activation_backward(Activation::kGeluTanh, other, wide, other, wide); });
    time(name + " bias backward", 0, 2 * elements, [&] { ops_->bias_backward(sums, wide); });
  }

  // The first and the last unit: embedding and classifier.
  void vocabulary(const Sizes& s) {
    const Tensor logits = tensor({2048, s.vocabulary}, kBF16), losses = tensor({2048}, kF32);
    const Tensor targets = indices({2048}, s.vocabulary);
    const std::string name = s.name;
    time(name + " classifier of 2048", 0, 4 * 2048 * double(s.vocabulary),
         [&] { ops_->classifier(logits, losses, targets, 1e-3f); });
    const Tensor table = tensor({s.vocabulary, s.hidden}, kF32);
    const Tensor positions = tensor({s.positions, s.hidden}, kF32);
    const Tensor gradient = tensor({s.rows, s.positions, s.hidden}, kF32);
    const Tensor tokens = indices({s.rows, s.positions}, s.vocabulary);
    time(name + " embedding backward", 0, 12 * double(gradient.count()),
         [&] { ops_->embedding_backward(table, positions, gradient, tokens); });
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
  }
};

int run(int argc, char** argv) {
  if (const Support support = cuda_support(); !support) {
    fmt::print(stderr, "cuda_bench: {}\n", support.reason);
    return 3;
  }
  const std::set<std::string_view> options(argv + 1, argv + argc);
  CudaBench bench(options.contains("--json"));
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
