// device_folds.h on a GPU.
#pragma once

#include <memory>

#include "kernels/device_folds.h"

namespace gxp {

// For streams of make_cuda_device()'s devices.
std::unique_ptr<DeviceFolds> make_cuda_folds();

void queue_switch_fold(Stream& stream, std::byte* to, const std::byte* from, size_t bytes,
                       DType dtype, ReduceOp op);
void queue_switch_store(Stream& stream, std::byte* to, const std::byte* from, size_t bytes);
void queue_meeting(Stream& stream, const Meeting& meeting);

}  // namespace gxp
