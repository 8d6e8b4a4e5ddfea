// Arrays of half types for tests, made of floats and seen as floats.
#pragma once

#include <cstring>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/tensor/tensor.h"
#include "tests/kernels/backends.h"

namespace gxp {

template <class Half>
Floats rounded_to(Floats x) {
  for (float& value : x) value = float(Half(value));
  return x;
}

// The values that a tensor of `dtype` would have.
inline Floats rounded(const Floats& x, DType dtype) {
  if (dtype == DType::kF32) return x;
  return dtype == DType::kBF16 ? rounded_to<BFloat16>(x) : rounded_to<Float16>(x);
}

// Elements of f32, bf16 or f16.
class HalfArray {
 public:
  HalfArray(const Floats& values, DType dtype)
      : dtype_(dtype), count_(values.size()), bytes_(values.size() * size_of(dtype)) {
    visit([&](auto* data) {
      using T = std::remove_reference_t<decltype(*data)>;
      for (size_t i = 0; i < count_; ++i) data[i] = T(values[i]);
    });
  }
  [[nodiscard]] Floats floats() const {
    Floats values(count_);
    const_cast<HalfArray*>(this)->visit([&](auto* data) {
      for (size_t i = 0; i < count_; ++i) values[i] = float(data[i]);
    });
    return values;
  }
  [[nodiscard]] const std::byte* data() const { return bytes_.data(); }
  std::byte* data() { return bytes_.data(); }
  Tensor tensor(const Shape& shape) { return {memory_of(bytes_), dtype_, shape}; }

 private:
  template <class Use>
  void visit(const Use& use) {
    if (dtype_ == DType::kF32) use(reinterpret_cast<float*>(bytes_.data()));
    if (dtype_ == DType::kBF16) use(reinterpret_cast<BFloat16*>(bytes_.data()));
    if (dtype_ == DType::kF16) use(reinterpret_cast<Float16*>(bytes_.data()));
  }
  DType dtype_;
  size_t count_;
  std::vector<std::byte> bytes_;
};

}  // namespace gxp
