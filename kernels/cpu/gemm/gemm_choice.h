// Selects the matrix kernels for this CPU by its features and a table, never by timing, so that a
// machine's bits are the same in every run.
#pragma once

#include <string>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/isa.h"

namespace gxp {

struct GemmKernels {
  const GemmKernel* floats;  // f32 and f16: the instruction set's own
  const GemmKernel* bf16;    // the same, or one that multiplies pairs
  // "avx512", or with more where bf16 has another kernel or cannot have a better one.
  std::string description;
};

// For an `isa` that this CPU has. bf16 products run on the first that can be had of AMX,
// AVX512-BF16 on CPUs where that is faster, and the instruction set's own; pairs need avx512.
// `bf16` names one instead: amx, avx512-bf16, amx-emulated (any CPU; for tests), or the instruction
// set's own name. Throws kUnavailable if it is unknown or not to be had here.
GemmKernels choose_gemm_kernels(Isa isa, const std::string& bf16 = "");

}  // namespace gxp
