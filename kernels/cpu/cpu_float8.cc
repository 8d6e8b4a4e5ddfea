#include "kernels/cpu/cpu_float8.h"

#include <algorithm>

#include "kernels/cpu/float_pieces.h"
#include "kernels/math/float8.h"

namespace gxp {
namespace {

constexpr size_t kBlock = 4096;  // elements: floats of a half type stay in L1

}  // namespace

ConstTensor CpuFloat8::round(const ConstTensor& x, Float8 type) {
  const size_t count = x.count();
  const InPieces from(convert_, x);
  largest_.assign((count + kBlock - 1) / kBlock, 0);
  if (rounded_.size() < count) rounded_.resize(count);
  // body(block, first element, floats, how many)
  const auto for_blocks = [&](const auto& body) {
    pool_.parallel_for(largest_.size(), 1, [&](size_t begin, size_t end) {
      alignas(64) float buffer[kBlock];
      for (size_t block = begin; block < end; ++block) {
        const size_t at = block * kBlock;
        const size_t here = std::min(kBlock, count - at);
        body(block, at, from.read(at, here, buffer), here);
      }
    });
  };
  for_blocks([&](size_t block, size_t, const float* values, size_t here) {
    largest_[block] = kernels_.largest(values, here);
  });
  const uint32_t largest = count == 0 ? 0 : std::ranges::max(largest_);
  const float scale = float8_scale(largest, type);
  for_blocks([&](size_t, size_t at, const float* values, size_t here) {
    kernels_.round(rounded_.data() + at, values, here, type, scale);
  });
  return {ConstMemory(memory_of(rounded_)).slice(0, count * sizeof(uint16_t)), DType::kBF16,
          x.shape};
}

}  // namespace gxp
