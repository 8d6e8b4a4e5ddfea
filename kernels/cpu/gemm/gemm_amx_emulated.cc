// The same algorithm as gemm_amx.cc with the tile registers in memory and their instructions in
// C++, for CPUs without AMX: what the tests run, and what a CPU's AMX is compared with.
#include "kernels/cpu/before_target.h"
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "lib/base/bytes.h"

#define GXP_VEC_BYTES 16
namespace gxp::amx_emulated {
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

// The instructions' flags are fixed: round to nearest, denormals are zero on the way in and out.
float without_denormal(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
float to_operand(uint32_t bits) { return without_denormal(__builtin_bit_cast(float, bits)); }
// Rounded once: in double a product of two bf16 is exact, and a sum of numbers of 24 bits that is
// rounded to 53 and then to 24 bits is the same as one rounded to 24 (Figueroa, SIGNUM 30(3),
// 1995).
float add_product(float sum, float a, float b) {
  return without_denormal(static_cast<float>(double(a) * double(b) + double(sum)));
}

class Tiles {
 public:
  template <int tile>
  void zero() {
    tiles_[tile] = {};
  }
  template <int tile>
  void load(const void* from, size_t stride) {
    for (size_t row = 0; row < kSide; ++row)
      std::memcpy(tiles_[tile].data() + row * kSide,
                  static_cast<const std::byte*>(from) + row * stride, kSide * sizeof(uint32_t));
  }
  template <int tile>
  void store(void* to, size_t stride) const {
    for (size_t row = 0; row < kSide; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * stride, tiles_[tile].data() + row * kSide,
                  kSide * sizeof(uint32_t));
  }
  // TDPBF16PS: of each sum, first terms and second terms of the pairs are added up apart, in the
  // order of the pairs; then both together; then that to c.
  template <int c, int a, int b>
  void add_products() {
    for (size_t i = 0; i < kSide; ++i) {
      const uint32_t* const row = tiles_[a].data() + i * kSide;
      std::array<float, kSide> first = {}, second = {};
      for (size_t p = 0; p < kSide; ++p) {
        add_terms(first, row[p] << 16, tiles_[b].data() + p * kSide, 16);
        add_terms(second, row[p] & kUpper, tiles_[b].data() + p * kSide, 0);
      }
      uint32_t* const sums = tiles_[c].data() + i * kSide;
      for (size_t j = 0; j < kSide; ++j) {
        const float both = without_denormal(first[j] + second[j]);
        sums[j] = __builtin_bit_cast(uint32_t, without_denormal(to_operand(sums[j]) + both));
      }
    }
  }

 private:
  static constexpr size_t kSide = 16;
  static constexpr uint32_t kUpper = 0xffff0000u;
  using Tile = std::array<uint32_t, kSide * kSide>;

  // `shift` brings b's term to the upper half, where a bf16 is a float.
  static void add_terms(std::array<float, kSide>& sums, uint32_t a, const uint32_t* b, int shift) {
    const float x = to_operand(a);
    for (size_t j = 0; j < kSide; ++j)
      sums[j] = add_product(sums[j], x, to_operand(b[j] << shift & kUpper));
  }

  std::array<Tile, 8> tiles_ = {};
};

// The order matters: each file uses those above it.
// clang-format off
#include "kernels/cpu/gemm/gemm_tiles.inc"
#include "kernels/cpu/gemm/gemm.inc"
// clang-format on
}  // namespace

const GemmKernel kGemmKernel = {"amx-emulated", compute_part, kScratchElements,
                                kColumns,       kBlockRows,   kBlockElements / kDepth};

}  // namespace gxp::amx_emulated
