// The CPU's instruction sets that kernels are compiled for, and the choice among them at run time.
//
// How one source serves all of them: a family of kernels (gemm, rows, ...) is written once in
// FAMILY.inc with the generic vector types of kernels/cpu/vec.inc. FAMILY_avx512.cc and
// FAMILY_avx2.cc include every standard header first, then switch the target with `#pragma GCC
// target`, then include FAMILY.inc inside their own namespace; FAMILY_baseline.cc does the same
// without a pragma (SSE2 on x86-64, NEON on arm64). The pragma, not a compiler flag: with a flag,
// inline functions of the standard library could be compiled for AVX-512 and then be the copy that
// the linker keeps for everybody. For bf16 products alone there are units with more instructions,
// gemm_avx512_bf16.cc and gemm_amx.cc; gemm_choice.h says where they are used.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

enum class Isa { kBaseline, kAvx2, kAvx512 };

std::string_view to_string(Isa isa);  // "baseline", "avx2", "avx512"

// kAvx2 needs AVX2, FMA and F16C; kAvx512 needs F, BW, DQ and VL besides.
bool cpu_has(Isa isa);

// The best that this CPU has, or the one named. Throws kUnavailable if `name` is unknown or not to
// be had here.
Isa choose_isa(const std::string& name = "");

}  // namespace gxp
