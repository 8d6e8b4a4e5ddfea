// The device whose memory a rank's calls work on, and the kernels that fold there. Both outlive the
// objects that get them.
#pragma once

#include "kernels/device_folds.h"
#include "lib/device/device.h"

namespace gxp {

struct FoldingDevice {
  Device& device;
  DeviceFolds& folds;
};

}  // namespace gxp
