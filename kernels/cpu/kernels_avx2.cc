#include "kernels/cpu/before_target.h"
#include "kernels/cpu/kernels.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c")
#define GXP_ISA avx2
#define GXP_VEC_BYTES 32
#include "kernels/cpu/kernels.inc"
#endif
