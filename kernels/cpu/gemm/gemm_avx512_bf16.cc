// bf16 products by AVX512-BF16's VDPBF16PS, which multiplies pairs.
#include "kernels/cpu/before_target.h"
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")

#define GXP_VEC_BYTES 64
namespace gxp::avx512_bf16 {
namespace {
// The order matters: each file uses those above it.
// clang-format off
#include "kernels/cpu/vec.inc"
// Panels are packed from vectors, and from half types.
#include "kernels/cpu/half.inc"
// What is packed, how it is multiplied, and how products are cut into tiles.
#include "kernels/cpu/gemm/gemm_source.inc"
#include "kernels/cpu/gemm/gemm_out.inc"
#include "kernels/cpu/gemm/gemm_pairs.inc"
// clang-format on

// The sums are f32; denormal operands and results count as zero, whatever the thread's settings.
GXP_INLINE Vec multiply_add(Vec sum, IVec a, IVec b) {
  return Vec(_mm512_dpbf16_ps(__m512(sum), __m512bh(a), __m512bh(b)));
}

// The order matters: each file uses those above it.
// clang-format off
#include "kernels/cpu/gemm/gemm_registers.inc"
#include "kernels/cpu/gemm/gemm.inc"
// clang-format on
}  // namespace

const GemmKernel kGemmKernel = {"avx512-bf16", compute_part, kScratchElements,
                                kColumns,      kBlockRows,   kBlockElements / kDepth};

}  // namespace gxp::avx512_bf16
#endif
