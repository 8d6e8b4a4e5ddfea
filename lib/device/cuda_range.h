// Names for profilers: NVTX ranges (NVIDIA Tools Extension, header-only version 3, in the CUDA
// toolkit). Without a profiler attached a range is two tests of a pointer.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace gxp {

// The work of this thread during the object's lifetime is shown as `name`. Ranges of a thread nest.
class CudaRange {
 public:
  explicit CudaRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  CudaRange(const CudaRange&) = delete;
  CudaRange& operator=(const CudaRange&) = delete;
  ~CudaRange() { nvtxRangePop(); }
};

}  // namespace gxp
