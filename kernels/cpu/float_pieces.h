// Tensors of any floating-point type as pieces of floats, so that kernels for floats work on half
// types, too. A piece of an f32 tensor is the tensor's own memory; one of a half type is
// converted to or from a buffer, which ought to stay in the cache until the kernel is done.
#pragma once

#include <cstddef>

#include "kernels/cpu/convert.h"
#include "lib/base/error.h"
#include "lib/tensor/tensor.h"

namespace gxp {

inline bool is_half(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// Elements [begin, begin + count) of a tensor that is read. `kernels` outlives it.
class InPieces {
 public:
  InPieces() = default;
  InPieces(const ConvertKernels& kernels, const ConstTensor& tensor)
      : kernels_(&kernels), dtype_(tensor.dtype), data_(tensor.memory.data) {
    GXP_ASSERT(dtype_ == DType::kF32 || is_half(dtype_));
    GXP_ASSERT(tensor.memory.space == MemorySpace::kHost);
  }
  [[nodiscard]] bool needs_buffer() const { return dtype_ != DType::kF32; }
  const float* read(size_t begin, size_t count, float* buffer) const {
    const std::byte* const from = data_ + begin * size_of(dtype_);
    if (!needs_buffer()) return reinterpret_cast<const float*>(from);
    kernels_->widen(buffer, from, {dtype_, 1, count, count, count});
    return buffer;
  }

 private:
  const ConvertKernels* kernels_ = nullptr;
  DType dtype_ = DType::kF32;
  const std::byte* data_ = nullptr;
};

// The same for a tensor that is written: results go to place(), then finish().
class OutPieces {
 public:
  OutPieces() = default;
  OutPieces(const ConvertKernels& kernels, const Tensor& tensor)
      : kernels_(&kernels), dtype_(tensor.dtype), data_(tensor.memory.data) {
    GXP_ASSERT(dtype_ == DType::kF32 || is_half(dtype_));
    GXP_ASSERT(tensor.memory.space == MemorySpace::kHost);
  }
  [[nodiscard]] bool needs_buffer() const { return dtype_ != DType::kF32; }
  float* place(size_t begin, float* buffer) const {
    return needs_buffer() ? buffer : reinterpret_cast<float*>(data_) + begin;
  }
  void finish(size_t begin, size_t count, const float* buffer) const {
    if (needs_buffer())
      kernels_->narrow(data_ + begin * size_of(dtype_), buffer, {dtype_, 1, count, count, count});
  }

 private:
  const ConvertKernels* kernels_ = nullptr;
  DType dtype_ = DType::kF32;
  std::byte* data_ = nullptr;
};

}  // namespace gxp
