#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/gemm_kernel.h"
#include "lib/base/bytes.h"

#define GXP_VEC_BYTES 16
namespace gxp::baseline {
namespace {
#include "kernels/cpu/vec.inc"
// The panels need the vectors.
#include "kernels/cpu/gemm.inc"
}  // namespace

const GemmKernel kGemmKernel = {compute_part, kScratchFloats, kColumns, kBlockRows,
                                kBlockFloats / kDepth};

}  // namespace gxp::baseline
