// device_folds.h on a GPU.
#pragma once

#include <memory>

#include "kernels/device_folds.h"

namespace gxp {

// For streams of make_cuda_device()'s devices.
std::unique_ptr<DeviceFolds> make_cuda_folds();

void queue_barrier(Stream& stream, const DeviceBarrier& barrier);

}  // namespace gxp
