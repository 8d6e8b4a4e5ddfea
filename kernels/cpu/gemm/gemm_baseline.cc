#include "kernels/cpu/before_target.h"
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#define GXP_ISA baseline
#define GXP_ISA_NAME "baseline"
#define GXP_VEC_BYTES 16
#include "kernels/cpu/gemm/gemm_vectors.inc"
