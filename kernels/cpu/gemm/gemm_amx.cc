// bf16 products by Intel's AMX. Run only where amx_support() is ok.
#include "kernels/cpu/before_target.h"
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")

#define GXP_VEC_BYTES 64
namespace gxp::amx {
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

// LDTILECFG's operand: palette 1 has eight tiles of up to 16 rows of 64 bytes.
struct TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved = {};
  std::array<uint16_t, 16> row_bytes = {64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);
alignas(64) constexpr TileConfiguration kConfiguration;

// The instructions, in the assembler's words: compilers' intrinsics want literal tile numbers.
class Tiles {
 public:
  Tiles() { asm volatile("ldtilecfg %0" : : "m"(kConfiguration)); }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int tile>
  GXP_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  GXP_INLINE void load(const void* from, size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  GXP_INLINE void store(void* to, size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
  }
  template <int c, int a, int b>
  GXP_INLINE void add_products() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
};

// The order matters: each file uses those above it.
// clang-format off
#include "kernels/cpu/gemm/gemm_tiles.inc"
#include "kernels/cpu/gemm/gemm.inc"
// clang-format on
}  // namespace

const GemmKernel kGemmKernel = {"amx",    compute_part, kScratchElements,
                                kColumns, kBlockRows,   kBlockElements / kDepth};

}  // namespace gxp::amx
#endif
