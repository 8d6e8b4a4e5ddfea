#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#define GXP_VEC_BYTES 16
namespace gxp::baseline {
namespace {
#include "kernels/cpu/vec.inc"
// Panels are packed from vectors, and from half types.
#include "kernels/cpu/half.inc"
// What is packed, how it is multiplied, and how products are cut into tiles.
#include "kernels/cpu/gemm/gemm_source.inc"
// Behind it.
#include "kernels/cpu/gemm/gemm_out.inc"
// Behind it.
#include "kernels/cpu/gemm/gemm_floats.inc"
// Behind it.
#include "kernels/cpu/gemm/gemm_registers.inc"
// Behind it.
#include "kernels/cpu/gemm/gemm.inc"
}  // namespace

const GemmKernel kGemmKernel = {"baseline", compute_part, kScratchElements,
                                kColumns,   kBlockRows,   kBlockElements / kDepth};

}  // namespace gxp::baseline
