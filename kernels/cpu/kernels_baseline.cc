#include "kernels/cpu/before_target.h"
#include "kernels/cpu/kernels.h"

#define GXP_ISA baseline
#define GXP_VEC_BYTES 16
#include "kernels/cpu/kernels.inc"
