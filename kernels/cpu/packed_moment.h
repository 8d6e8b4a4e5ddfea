// A moment of the optimizer in fewer bits than a float: bf16, or codes of 8 bits with a scale for
// each block (lib/base/state_block.h, kernels/math/dynamic_map.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/convert.h"
#include "kernels/math/dynamic_map.h"
#include "kernels/math/random_block.h"
#include "lib/base/state_block.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// to[i] = from[i] rounded to bf16 at random; `bits.first` is the number of the first element.
inline void narrow_stochastically(const ConvertKernels& kernels, uint16_t* to, const float* from,
                                  size_t count, const RandomBits& bits) {
  for (size_t at = 0; at < count;) {
    const size_t element = bits.first + at;
    const size_t place = element % kRandomBlock;
    const size_t here = std::min(count - at, kRandomBlock - place);
    kernels.narrow_stochastically(to + at, from + at, here, uint32_t(place),
                                  random_block(bits.key, element / kRandomBlock));
    at += here;
  }
}

// As PackedAdamW has it (kernels/elementwise.h). `kernels` outlives it. Threads: any, on elements
// of their own. Elements [at, at + count) are whole blocks but for the moment's last.
class PackedMoment {
 public:
  PackedMoment(const ConvertKernels& kernels, const Tensor& moment, const Tensor& scales,
               const RandomBits& bits)
      : kernels_(kernels), moment_(moment), scales_(scales), bits_(bits) {}

  // The values of the elements, whose codes mean what `map` says.
  void unpack(const DynamicMap& map, size_t at, size_t count, float* values) const {
    if (moment_.dtype == DType::kBF16)
      return kernels_.widen(values, moment_.data<uint16_t>() + at,
                            {DType::kBF16, 1, count, count, count});
    const auto* const codes = moment_.data<uint8_t>() + at;
    const float* const scale = scales_.data<float>() + at / kStateBlock;
    for (size_t i = 0; i < count; ++i) values[i] = map.values[codes[i]] * scale[i / kStateBlock];
  }

  // Stores the values: as bf16, rounded by the random bits; else as code_of(value, 1 / scale),
  // where a block's scale is its largest magnitude.
  template <class CodeOf>
  void pack(size_t at, size_t count, const float* values, const CodeOf& code_of) const {
    if (moment_.dtype == DType::kBF16)
      return narrow_stochastically(kernels_, moment_.data<uint16_t>() + at, values, count,
                                   {bits_.key, bits_.first + at});
    auto* const codes = moment_.data<uint8_t>() + at;
    for (size_t begin = 0; begin < count; begin += kStateBlock) {
      const size_t end = std::min(count, begin + kStateBlock);
      float most = 0;
      for (size_t i = begin; i < end; ++i) most = std::max(most, std::fabs(values[i]));
      scales_.data<float>()[(at + begin) / kStateBlock] = most;
      const float inverse = inverse_scale(most);
      for (size_t i = begin; i < end; ++i) codes[i] = code_of(values[i], inverse);
    }
  }

 private:
  const ConvertKernels& kernels_;
  Tensor moment_;
  Tensor scales_;
  RandomBits bits_;
};

}  // namespace gxp
