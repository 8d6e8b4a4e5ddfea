#include "tests/cuda/on_device.h"

#include <chrono>
#include <map>
#include <utility>

#include "kernels/cuda/cuda_ops.h"
#include "lib/device/cuda_device.h"
#include "tests/kernels/backends.h"

namespace gxp {
namespace {

// The tensors of one call.
class Call {
 public:
  explicit Call(Device& device) : device_(device) {}

  // The GPU's copy. Tensors that share their memory share the copy.
  ConstTensor on_device(const ConstTensor& tensor) {
    if (tensor.memory.data == nullptr) return tensor;
    return {copy_of(tensor.memory), tensor.dtype, tensor.shape};
  }
  Tensor on_device(const Tensor& tensor) {
    if (tensor.memory.data == nullptr) return tensor;
    written_[tensor.memory.data] = tensor.memory;
    return {copy_of(tensor.memory), tensor.dtype, tensor.shape};
  }
  template <class AnyTensor>
  GroupedHeads<AnyTensor> on_device(const GroupedHeads<AnyTensor>& in) {
    return {on_device(in.queries), on_device(in.keys), on_device(in.values), in.heads, in.kv_heads};
  }
  template <class Plain>
  Plain on_device(const Plain& plain) {
    return plain;
  }
  LinearBackward on_device(const LinearBackward& layer) {
    return {.dx = on_device(layer.dx),
            .dweight = on_device(layer.dweight),
            .dbias = on_device(layer.dbias),
            .dout = on_device(layer.dout),
            .in = on_device(layer.in),
            .weight = on_device(layer.weight),
            .of_gelu = layer.of_gelu,
            .accumulate = layer.accumulate};
  }
  MatmulOptions on_device(const MatmulOptions& options) {
    MatmulOptions there = options;
    there.bias = on_device(options.bias);
    there.residual = on_device(options.residual);
    return there;
  }

  void bring_back() {
    for (const auto& [data, memory] : written_) device_.copy(memory, copies_.at(data).memory());
  }

 private:
  Memory copy_of(ConstMemory memory) {
    const auto [found, is_new] = copies_.try_emplace(memory.data);
    Buffer& buffer = found->second;
    if (is_new) {
      buffer = device_.allocate(memory.bytes, MemoryKind::kWorkspace);
      device_.copy(buffer.memory(), memory);
    }
    GXP_ASSERT(buffer.memory().bytes == memory.bytes);
    return buffer.memory();
  }

  Device& device_;
  std::map<const std::byte*, Buffer> copies_;   // by the host's address
  std::map<const std::byte*, Memory> written_;  // likewise
};

class OpsOnDevice final : public Ops {
 public:
  OpsOnDevice(std::unique_ptr<Ops> ops, Stream& stream, Device& device)
      : ops_(std::move(ops)), stream_(stream), device_(device) {}

  [[nodiscard]] std::string description() const override { return ops_->description(); }
  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override {
    return run(&Ops::matmul, out, a, b, options);
  }
  void bias_backward(Tensor dbias, ConstTensor dout) override {
    return run(&Ops::bias_backward, dbias, dout);
  }
  void linear_backward(const LinearBackward& layer) override {
    return run(&Ops::linear_backward, layer);
  }
  void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x, ConstTensor weight,
                         ConstTensor bias, float eps) override {
    return run(&Ops::layernorm_forward, out, mean, rstd, x, weight, bias, eps);
  }
  void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                       ConstTensor weight, ConstTensor bias) override {
    return run(&Ops::layernorm_apply, out, x, mean, rstd, weight, bias);
  }
  void layernorm_backward(Tensor dx, Tensor dweight, Tensor dbias, ConstTensor dout, ConstTensor x,
                          ConstTensor mean, ConstTensor rstd, ConstTensor weight) override {
    return run(&Ops::layernorm_backward, dx, dweight, dbias, dout, x, mean, rstd, weight);
  }
  void rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                       float eps) override {
    return run(&Ops::rmsnorm_forward, out, rstd, x, weight, eps);
  }
  void rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight) override {
    return run(&Ops::rmsnorm_apply, out, x, rstd, weight);
  }
  void rmsnorm_backward(Tensor dx, Tensor dweight, ConstTensor dout, ConstTensor x,
                        ConstTensor rstd, ConstTensor weight) override {
    return run(&Ops::rmsnorm_backward, dx, dweight, dout, x, rstd, weight);
  }
  void gelu_forward(Tensor out, ConstTensor x) override { return run(&Ops::gelu_forward, out, x); }
  void gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x) override {
    return run(&Ops::gelu_backward, dx, activated, dout, x);
  }
  void swiglu_forward(Tensor out, ConstTensor gate, ConstTensor up) override {
    return run(&Ops::swiglu_forward, out, gate, up);
  }
  void swiglu_backward(Tensor dout, Tensor gate, Tensor up) override {
    return run(&Ops::swiglu_backward, dout, gate, up);
  }
  void rope_forward(Tensor x, int head_size, double theta) override {
    return run(&Ops::rope_forward, x, head_size, theta);
  }
  void rope_backward(Tensor dx, int head_size, double theta) override {
    return run(&Ops::rope_backward, dx, head_size, theta);
  }
  void attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) override {
    return run(&Ops::attention_forward, out, lse, qkv, heads);
  }
  void attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout, ConstTensor qkv,
                          ConstTensor out, ConstTensor lse, int heads) override {
    return run(&Ops::attention_backward, dqkv, scratch, dout, qkv, out, lse, heads);
  }
  void grouped_attention_forward(Tensor out, Tensor lse,
                                 const GroupedHeads<ConstTensor>& in) override {
    return run(&Ops::grouped_attention_forward, out, lse, in);
  }
  void grouped_attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                  ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                  ConstTensor out, ConstTensor lse) override {
    return run(&Ops::grouped_attention_backward, gradients, scratch, dout, in, out, lse);
  }
  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table) override {
    return run(&Ops::embedding_forward, out, tokens, token_table, position_table);
  }
  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens) override {
    return run(&Ops::embedding_backward, dtoken_table, dposition_table, dout, tokens);
  }
  void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) override {
    return run(&Ops::classifier, logits, losses, targets, scale);
  }
  void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) override {
    return run(&Ops::classifier_loss, losses, logits, targets);
  }
  void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
             const AdamWStep& step) override {
    return run(&Ops::adamw, weights, first, second, gradients, step);
  }
  void sgd(Tensor weights, Tensor momentum, ConstTensor gradients, const SgdStep& step) override {
    return run(&Ops::sgd, weights, momentum, gradients, step);
  }
  void lion(Tensor weights, Tensor momentum, ConstTensor gradients, const LionStep& step) override {
    return run(&Ops::lion, weights, momentum, gradients, step);
  }
  void momentum(Tensor direction, Tensor momentum, ConstTensor gradients,
                const MomentumStep& step) override {
    return run(&Ops::momentum, direction, momentum, gradients, step);
  }
  void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) override {
    return run(&Ops::sums_of_squares, of_rows, of_columns, x);
  }
  void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                              ConstTensor columns) override {
    return run(&Ops::scale_rows_and_columns, out, x, rows, columns);
  }
  double sum_of_squares(ConstTensor x) override { return run(&Ops::sum_of_squares, x); }
  void add_sum_of_squares(Tensor total, ConstTensor x) override {
    return run(&Ops::add_sum_of_squares, total, x);
  }
  double sum(ConstTensor x) override { return run(&Ops::sum, x); }
  void convert(Tensor out, ConstTensor x) override { return run(&Ops::convert, out, x); }
  void round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) override {
    return run(&Ops::round_stochastically, out, x, bits);
  }
  void add(Tensor out, ConstTensor a, ConstTensor b) override { return run(&Ops::add, out, a, b); }
  void fill(Tensor out, float value) override { return run(&Ops::fill, out, value); }

 private:
  template <class Result, class... Parameters, class... Given>
  Result run(Result (Ops::*operation)(Parameters...), const Given&... given) {
    Call call(device_);
    if constexpr (std::is_void_v<Result>) {
      (ops_.get()->*operation)(call.on_device(given)...);
      wait();
      call.bring_back();
    } else {
      const Result result = (ops_.get()->*operation)(call.on_device(given)...);
      wait();
      return result;
    }
  }

  void wait() { stream_.synchronize(Deadline::after(std::chrono::seconds(300))); }

  std::unique_ptr<Ops> ops_;
  Stream& stream_;
  Device& device_;
};

}  // namespace

TestOps make_cuda_test_ops() {
  const std::shared_ptr<Device> device = make_cuda_device(0);
  const std::shared_ptr<Stream> stream = device->make_stream("compute");
  auto ops = make_ops_on_device(make_cuda_ops(*stream, *device), *stream, *device);
  return {{device, stream}, std::move(ops)};
}

std::unique_ptr<Ops> make_ops_on_device(std::unique_ptr<Ops> ops, Stream& stream, Device& device) {
  return std::make_unique<OpsOnDevice>(std::move(ops), stream, device);
}

}  // namespace gxp
