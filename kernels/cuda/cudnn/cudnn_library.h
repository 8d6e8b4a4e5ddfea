// NVIDIA's cuDNN as found at run time: nothing links it, nothing needs its headers, and gxp starts
// without it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "kernels/cuda/cudnn/cudnn_abi.h"
#include "lib/base/error.h"

namespace gxp {

struct CudnnLibrary {
  Support support;  // whether it was found, and is new enough
  CudnnFunctions functions;
};

// Loaded once, and kept.
const CudnnLibrary& cudnn_library();

// "9.19.0" of cudnnGetVersion()'s number.
inline std::string cudnn_version_name(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace gxp
