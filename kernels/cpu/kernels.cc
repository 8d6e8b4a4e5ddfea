#include "kernels/cpu/kernels.h"

namespace gxp {

const CpuKernels& cpu_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return avx512::kCpuKernels;
    case Isa::kAvx2:
      return avx2::kCpuKernels;
#endif
    default:
      return baseline::kCpuKernels;
  }
}

// The most that attention.inc carves out, in backward: 5 arrays of whole tiles of the head's rows
// and 3 gradients, two tiles of scores, and each rounded up to a cache line.
size_t attention_scratch_floats(const AttentionShape& shape) {
  constexpr size_t kTile = 64;
  constexpr size_t kLine = 16;
  const auto round_up = [](size_t n, size_t step) { return (n + step - 1) / step * step; };
  const size_t width = round_up(shape.head_size, kLine);
  return 8 * round_up(shape.positions, kTile) * width + 2 * kTile * (kTile + width) + 16 * kLine;
}

// Scores, a query and its output.
size_t cached_scratch_floats(const AttentionCached& args) {
  constexpr size_t kLine = 16;
  const auto lines = [](size_t count) { return (count + kLine - 1) / kLine * kLine; };
  return lines(args.positions()) + 2 * lines(args.shape.head_size);
}

}  // namespace gxp
