// The device whose memory a rank's calls work on, and the kernels that fold there. Both outlive
// what they are given to.
#pragma once

#include "kernels/device_folds.h"
#include "lib/device/device.h"

namespace gxp {

struct FoldingDevice {
  Device& device;
  DeviceFolds& folds;
};

}  // namespace gxp
