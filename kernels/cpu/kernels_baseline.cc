#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/kernels.h"

// Behind the target: code that is inlined into kernels is compiled for it.
#include "kernels/math/adamw.h"
#include "kernels/math/float8.h"
#include "kernels/math/gelu.h"
#include "kernels/math/layernorm.h"
#include "kernels/math/lion.h"
#include "kernels/math/momentum.h"
#include "kernels/math/rmsnorm.h"
#include "kernels/math/silu.h"
#include "kernels/math/softmax.h"
#include "kernels/math/stochastic.h"

#define GXP_VEC_BYTES 16
namespace gxp::baseline {
namespace {
// The order matters: each file uses those above it.
// clang-format off
#include "kernels/cpu/vec.inc"
// The families need the vectors, some of them half types, attention the products too.
#include "kernels/cpu/half.inc"
#include "kernels/cpu/attention/product.inc"
#include "kernels/cpu/attention/attention.inc"
#include "kernels/cpu/classifier.inc"
#include "kernels/cpu/convert.inc"
#include "kernels/cpu/elementwise.inc"
#include "kernels/cpu/float8.inc"
#include "kernels/cpu/fold.inc"
#include "kernels/cpu/quantize.inc"
#include "kernels/cpu/rows.inc"
// clang-format on
}  // namespace

const CpuKernels kCpuKernels = {kElementwiseKernels, kRowKernels,   kClassifierKernels,
                                kAttentionKernels,   kFoldKernels,  kQuantizeKernels,
                                kConvertKernels,     kFloat8Kernels};

}  // namespace gxp::baseline
