// The dynamic shared memory of a block, as the launch sized it.
#pragma once

#include <cuda_runtime.h>

namespace gxp {

template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char gxp_dynamic_shared[];
  return reinterpret_cast<T*>(gxp_dynamic_shared);
}

}  // namespace gxp
