#include "tests/cuda/on_device.h"

#include <chrono>
#include <map>
#include <utility>

#include "kernels/cuda/cuda_ops.h"
#include "lib/device/cuda_device.h"
#include "tests/cuda/forwarded_ops.h"
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
  LinearGelu on_device(const LinearGelu& layer) {
    return {.activated = on_device(layer.activated),
            .x = on_device(layer.x),
            .in = on_device(layer.in),
            .weight = on_device(layer.weight),
            .bias = on_device(layer.bias)};
  }
  LinearBackward on_device(const LinearBackward& layer) {
    return {.dx = on_device(layer.dx),
            .dweight = on_device(layer.dweight),
            .dbias = on_device(layer.dbias),
            .dout = on_device(layer.dout),
            .in = on_device(layer.in),
            .weight = on_device(layer.weight),
            .of_gelu = layer.of_gelu,
            .accumulate = layer.accumulate,
            .outputs_first = layer.outputs_first,
            .add_dx = layer.add_dx,
            .float8 = layer.float8};
  }
  ElementwiseCall on_device(ElementwiseCall call) {
    for (Tensor& tensor : call.written) tensor = on_device(std::as_const(tensor));
    for (ConstTensor& tensor : call.read) tensor = on_device(std::as_const(tensor));
    return call;
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

class OpsOnDevice final : public ForwardedOps<OpsOnDevice> {
 public:
  OpsOnDevice(std::unique_ptr<Ops> ops, Stream& stream, Device& device)
      : ops_(std::move(ops)), stream_(stream), device_(device) {}

  [[nodiscard]] std::string description() const override { return ops_->description(); }

  template <class Result, class... Parameters, class... Given>
  Result carry_out(Result (Ops::*operation)(Parameters...), const Given&... given) {
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

 private:
  void wait() { stream_.synchronize(Deadline::after(std::chrono::seconds(300))); }

  std::unique_ptr<Ops> ops_;
  Stream& stream_;
  Device& device_;
};

}  // namespace

TestOps make_cuda_test_ops(const CudaOpsOptions& options) {
  const std::shared_ptr<Device> device = make_cuda_device(0);
  const std::shared_ptr<Stream> stream = device->make_stream("compute");
  auto ops = make_ops_on_device(make_cuda_ops(*stream, *device, options), *stream, *device);
  return {{device, stream}, std::move(ops)};
}

std::unique_ptr<Ops> make_ops_on_device(std::unique_ptr<Ops> ops, Stream& stream, Device& device) {
  return std::make_unique<OpsOnDevice>(std::move(ops), stream, device);
}

}  // namespace gxp
