// Memory of GPUs as files (DMA-BUF), which RDMA devices map. CUDA's runtime has no such function, so
// the driver's is asked for.
#pragma once

#include "lib/base/error.h"
#include "lib/device/device.h"

namespace gxp {

// Whether GPU `index` and its driver export memory; if not, why.
Support cuda_export_support(int index);
// Throws kUnavailable as that says; kDevice: the driver refuses.
DmaBuf export_cuda_memory(int index, ConstMemory memory);

}  // namespace gxp
