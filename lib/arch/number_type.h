// The types of train.precision and of gradients.
#pragma once

#include <array>
#include <string_view>

#include "lib/base/choice.h"
#include "lib/base/dtype.h"

namespace gxp {

enum class NumberType { kFp32, kBf16, kFp16 };
constexpr std::array<std::string_view, 3> words_of(NumberType) { return {"fp32", "bf16", "fp16"}; }

constexpr DType dtype_of(NumberType type) {
  if (type == NumberType::kBf16) return DType::kBF16;
  return type == NumberType::kFp16 ? DType::kF16 : DType::kF32;
}

}  // namespace gxp
