#include "lib/device/cuda_multicast.h"

#include <optional>
#include <string>

#include "lib/base/bytes.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// The driver finds out only now what the system lacks.
void check_multicast(CUresult result, const std::string& act) {
  if (result == CUDA_ERROR_SYSTEM_NOT_READY)
    fail(ErrorKind::kDevice, "{}: the NVLink switch is not ready; does nvidia-fabricmanager run?",
         act);
  check_driver(result, act);
}

std::string act_of(const char* verb, const CudaPart& part) {
  return fmt::format("{} {} of GPU {} for the NVLink switch", verb, format_bytes(part.bytes),
                     part.index);
}

CUmemGenericAllocationHandle create(const CudaPart& part, int devices) {
  const std::string act = act_of("make a multicast object for", part);
  CUmulticastObjectProp properties{};
  properties.numDevices = unsigned(devices);
  properties.size = part.bytes;
  properties.handleTypes = kDescriptor;
  size_t unit = 0;
  check_multicast(
      cuda_driver().multicast_granularity(&unit, &properties, CU_MULTICAST_GRANULARITY_MINIMUM),
      act);
  if (unit == 0 || part.bytes % unit != 0)
    fail(ErrorKind::kDevice, "{}: it takes whole multiples of {}", act, format_bytes(unit));
  CUmemGenericAllocationHandle handle = 0;
  check_multicast(cuda_driver().multicast_create(&handle, &properties), act);
  return handle;
}

class CudaMulticast final : public DeviceMulticast {
 public:
  // Takes the object, and joins it.
  CudaMulticast(CUmemGenericAllocationHandle object, const CudaPart& part)
      : object_(object), part_(part) {
    check_multicast(cuda_driver().multicast_add(object_.get(), part.index), act_of("add", part_));
  }
  CudaMulticast(const CudaMulticast&) = delete;
  CudaMulticast& operator=(const CudaMulticast&) = delete;
  // To unmap does not wait for what uses the addresses: after a failure, streams may hold some.
  ~CudaMulticast() override {
    cudaSetDevice(part_.index);
    cudaDeviceSynchronize();  // ends: kernels that wait for peers have deadlines
    mapping_.reset();
    if (is_bound_) cuda_driver().multicast_unbind(object_.get(), part_.index, 0, part_.bytes);
  }

  [[nodiscard]] SharedAllocation share() const override {
    return {export_descriptor(object_, act_of("share a multicast object for", part_)), part_.bytes};
  }

  [[nodiscard]] std::byte* bind() override {
    GXP_ASSERT(!is_bound_);
    const std::string act = act_of("bind", part_);
    check_cuda(cudaSetDevice(part_.index), act);
    check_multicast(
        cuda_driver().multicast_bind(object_.get(), 0, part_.memory.get(), 0, part_.bytes, 0), act);
    is_bound_ = true;
    return mapping_.emplace(object_, part_.bytes, part_.index).data();
  }

 private:
  const CudaHandle object_;
  const CudaPart part_;
  bool is_bound_ = false;
  std::optional<CudaMapping> mapping_;
};

}  // namespace

Support cuda_multicast_support(int index) {
  const CudaDriver& driver = cuda_driver();
  if (!driver.multicast_support) return driver.multicast_support;
  int supported = 0;
  check_driver(driver.attribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, index),
               fmt::format("ask GPU {}", index));
  if (supported == 0)
    return {false, fmt::format("GPU {} has no NVLink switch that adds (NVLS: Hopper or later, with "
                               "NVSwitch)",
                               index)};
  return {};
}

std::unique_ptr<DeviceMulticast> make_cuda_multicast(const CudaPart& part, int devices) {
  check_cuda(cudaSetDevice(part.index), fmt::format("select GPU {}", part.index));
  return std::make_unique<CudaMulticast>(create(part, devices), part);
}

std::unique_ptr<DeviceMulticast> join_cuda_multicast(const CudaPart& part,
                                                     const SharedAllocation& made) {
  const std::string act = act_of("join a multicast object with", part);
  check_cuda(cudaSetDevice(part.index), act);
  if (made.bytes != part.bytes)
    fail(ErrorKind::kDevice, "{}: the other GPUs' memory has {}", act, format_bytes(made.bytes));
  return std::make_unique<CudaMulticast>(import_descriptor(made.fd, act), part);
}

}  // namespace gxp
