// Intel's matrix tiles: may this process use them?
#pragma once

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/error.h"

namespace gxp {

// Multiplies small matrices of bf16 by `kernel` and by the emulation of AMX. Not ok if they differ.
Support compare_with_emulation(const GemmKernel& kernel);

// AMX-TILE and AMX-BF16 of the CPU, their state in what the kernel saves, and the kernel's
// permission, which is asked for once for the whole process (Linux: arch_prctl(2),
// ARCH_REQ_XCOMP_PERM). Then a small product is compared with the emulation's.
//   Threads  any; the answer is the first call's.
//   Returns  why not: the CPU lacks them ("" as reason), or has them and they cannot be used.
Support amx_support();

}  // namespace gxp
