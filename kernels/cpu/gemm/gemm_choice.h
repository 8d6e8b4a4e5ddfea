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
  // For the log: "avx512"; followed by the bf16 kernel if that is another, or by why a faster one
  // cannot be used.
  std::string description;
};

// For an `isa` that this CPU has. bf16 products run on the first of these that this CPU has: AMX;
// AVX512-BF16, where that is faster; the instruction set's own. The first two need avx512. `bf16`
// names one instead: amx, avx512-bf16, amx-emulated (any CPU; for tests), or the instruction set's
// own name. Throws kUnavailable if it is unknown or this CPU lacks it.
GemmKernels choose_gemm_kernels(Isa isa, const std::string& bf16 = "");

}  // namespace gxp
