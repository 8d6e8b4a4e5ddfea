#include "kernels/cpu/before_target.h"
#include "kernels/cpu/kernels.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#define GXP_ISA avx512
#define GXP_VEC_BYTES 64
#include "kernels/cpu/kernels.inc"
#endif
