#include "kernels/cpu/before_target.h"
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c")
#define GXP_ISA avx2
#define GXP_ISA_NAME "avx2"
#define GXP_VEC_BYTES 32
#include "kernels/cpu/gemm/gemm_vectors.inc"
#endif
