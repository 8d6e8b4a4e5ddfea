// The CPU's instruction sets that kernels are compiled for, and the choice among them at run time.
//
// One source serves all of them: kernels are written with the generic vector types of vec.inc, in
// .inc files. kernels_avx512.cc and kernels_avx2.cc include every standard header first, switch the
// target with `#pragma GCC target`, and then include kernels.inc, which puts all families in the
// namespace of the instruction set; kernels_baseline.cc does the same without a pragma (SSE2 on
// x86-64, NEON on arm64). The pragma, not a compiler flag: with a flag, inline functions of the
// standard library could be compiled for AVX-512 and then be the copy that the linker keeps for
// everybody. gemm_*.cc do the same for matrix products; for bf16 there are units with more
// instructions, gemm_avx512_bf16.cc and gemm_amx.cc, which gemm_choice.h chooses.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

enum class Isa { kBaseline, kAvx2, kAvx512 };

std::string_view to_string(Isa isa);  // "baseline", "avx2", "avx512"

// kAvx2 needs AVX2, FMA and F16C; kAvx512 needs F, BW, DQ and VL besides.
bool cpu_has(Isa isa);

// The best that this CPU has, or the one named. Throws kUnavailable if `name` is unknown or this
// CPU lacks it.
Isa choose_isa(const std::string& name = "");

}  // namespace gxp
