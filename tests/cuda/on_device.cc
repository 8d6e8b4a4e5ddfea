#include "tests/cuda/on_device.h"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "kernels/cuda/table/cuda_ops.h"
#include "kernels/forwarded_ops.h"
#include "lib/device/cuda_device.h"
#include "tests/cuda/tensors_of.h"
#include "tests/kernels/backends.h"

namespace gxp {
namespace {

// The tensors of one call.
class Call {
 public:
  explicit Call(Device& device) : device_(device) {}

  // With the GPU's copies of its tensors. Tensors that share their memory share the copy.
  template <class Argument>
  Argument on_device(Argument argument) {
    for_tensors(argument, [this](auto& tensor) {
      if (tensor.memory.data == nullptr) return;
      if constexpr (std::is_same_v<decltype(tensor), Tensor&>)
        written_[tensor.memory.data] = tensor.memory;
      tensor.memory = copy_of(tensor.memory);
      if (tensor.largest != nullptr) tensor.largest = place_of(tensor.largest);
    });
    return argument;
  }

  void bring_back() {
    for (const auto& [data, memory] : written_) device_.copy(memory, copies_.at(data).memory());
  }

 private:
  // The copy of a tensor's place of its largest value.
  float* place_of(const float* largest) {
    const ConstMemory memory = {reinterpret_cast<const std::byte*>(largest), sizeof(float),
                                MemorySpace::kHost};
    return reinterpret_cast<float*>(copy_of(memory).data);
  }
  float* place_of(float* largest) {
    auto* const data = reinterpret_cast<std::byte*>(largest);
    written_[data] = {data, sizeof(float), MemorySpace::kHost};
    return place_of(static_cast<const float*>(largest));
  }

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
  Result carry_out(OpsCall /*call*/, Result (Ops::*operation)(Parameters...),
                   const Given&... given) {
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

  void apply_all(std::span<const ElementwiseCall> calls) override {
    carry_out_all(&Ops::apply_all, calls);
  }
  void adamw_packed(std::span<const PackedAdamW> calls) override {
    carry_out_all(&Ops::adamw_packed, calls);
  }
  uint64_t fingerprint(std::span<const ConstTensor> parts) override {
    Call call(device_);
    std::vector<ConstTensor> on_device;
    for (const ConstTensor& part : parts) on_device.push_back(call.on_device(part));
    return ops_->fingerprint(on_device);
  }

 private:
  template <class One>
  void carry_out_all(void (Ops::*operation)(std::span<const One>), std::span<const One> calls) {
    Call all(device_);
    std::vector<One> on_device;
    for (const One& call : calls) on_device.push_back(all.on_device(call));
    (ops_.get()->*operation)(on_device);
    wait();
    all.bring_back();
  }

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
