// The dynamic shared memory of an emulated block; found in place of kernels/cuda's header.
#pragma once

#include "tests/cuda/emulation/cuda_runtime.h"

namespace gxp {

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulation::dynamic_shared_memory());
}

}  // namespace gxp
