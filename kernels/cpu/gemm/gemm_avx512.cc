#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")

#define GXP_VEC_BYTES 64
namespace gxp::avx512 {
namespace {
// The order matters: each file uses those above it.
// clang-format off
#include "kernels/cpu/vec.inc"
// Panels are packed from vectors, and from half types.
#include "kernels/cpu/half.inc"
// What is packed, how it is multiplied, and how products are cut into tiles.
#include "kernels/cpu/gemm/gemm_source.inc"
#include "kernels/cpu/gemm/gemm_out.inc"
#include "kernels/cpu/gemm/gemm_floats.inc"
#include "kernels/cpu/gemm/gemm_registers.inc"
#include "kernels/cpu/gemm/gemm.inc"
// clang-format on
}  // namespace

const GemmKernel kGemmKernel = {"avx512", compute_part, kScratchElements,
                                kColumns, kBlockRows,   kBlockElements / kDepth};

}  // namespace gxp::avx512
#endif
