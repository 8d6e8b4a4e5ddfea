// NVIDIA GPUs. Only in builds with GXP_CUDA=ON; building it, and asking for support, needs no
// driver.
#pragma once

#include <compare>
#include <memory>

#include "lib/base/error.h"
#include "lib/device/device.h"

namespace gxp {

// Whether this process can use a GPU; if not, what is missing: the driver, a newer driver, a GPU.
Support cuda_support();
// How many GPUs there are, numbered from 0; where there is support.
int cuda_device_count();

struct ComputeCapability {
  int major, minor;
  auto operator<=>(const ComputeCapability&) const = default;
};
ComputeCapability compute_capability(int index);

// GPU `index` of those that CUDA_VISIBLE_DEVICES shows. Its memory is of MemorySpace::kCuda,
// aligned to 256 bytes. Throws kUnavailable with cuda_support()'s reason, or if there is no such
// GPU.
std::unique_ptr<Device> make_cuda_device(int index);

}  // namespace gxp
