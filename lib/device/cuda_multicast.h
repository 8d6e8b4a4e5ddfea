// Multicast objects of the driver (DeviceMulticast). cuda_sharing.cc's own.
#pragma once

#include <memory>

#include "lib/device/cuda_mapping.h"
#include "lib/device/device_sharing.h"

namespace gxp {

// An allocation of GPU `index`, which lives longer than the object that it is bound to.
struct CudaPart {
  const CudaHandle& memory;
  size_t bytes;
  int index;
};

Support cuda_multicast_support(int index);
std::unique_ptr<DeviceMulticast> make_cuda_multicast(const CudaPart& part, int devices);
std::unique_ptr<DeviceMulticast> join_cuda_multicast(const CudaPart& part,
                                                     const SharedAllocation& made);

}  // namespace gxp
