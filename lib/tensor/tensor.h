// Shape and element type over borrowed memory. No graph, no ownership, row-major and contiguous.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "lib/base/dtype.h"
#include "lib/device/memory.h"

namespace gxp {

// Up to four dimensions, outermost first. The empty shape is a scalar: one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<size_t> sizes);
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] size_t operator[](int i) const { return sizes_[static_cast<size_t>(i)]; }
  [[nodiscard]] size_t count() const;
  // Rows and columns of the matrix that the last dimension's rows form: (B, T, C) is (B * T, C).
  [[nodiscard]] size_t columns() const;
  [[nodiscard]] size_t rows() const;
  // The first dimension becomes `size`; needs one.
  void resize_outermost(size_t size) { sizes_[0] = size; }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<size_t, 4> sizes_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "(4, 32, 64)"

// `memory` has exactly shape.count() * size_of(dtype) bytes.
template <class Bytes>
struct BasicTensor {
  using Largest = std::conditional_t<std::is_same_v<Bytes, Memory>, float, const float>;

  Bytes memory;
  DType dtype = DType::kF32;
  Shape shape;
  // Beside the tensor, in the same memory space: its largest |x|, for products in 8 bits, as
  // kernels/ops.h has it ("Largest"). Null: not kept.
  Largest* largest = nullptr;

  BasicTensor() = default;
  BasicTensor(Bytes bytes, DType type, const Shape& sizes)
      : memory(bytes), dtype(type), shape(sizes) {
    GXP_ASSERT(bytes.bytes == sizes.count() * size_of(type));
  }
  // A tensor may be read wherever a ConstTensor is wanted; a default one is a default one there.
  operator BasicTensor<ConstMemory>() const  // NOLINT: a view of the same elements
      requires std::is_same_v<Bytes, Memory> {
    if (memory.data == nullptr && count() > 0) return {};
    return BasicTensor<ConstMemory>(memory, dtype, shape).with_largest(largest);
  }
  [[nodiscard]] size_t count() const { return shape.count(); }
  // The elements; GXP_ASSERTs that T has the dtype's size and that the memory is the host's.
  template <class T>
  [[nodiscard]] auto* data() const {
    GXP_ASSERT(sizeof(T) == size_of(dtype) && memory.space == MemorySpace::kHost);
    if constexpr (std::is_same_v<Bytes, Memory>) {
      return reinterpret_cast<T*>(memory.data);
    } else {
      return reinterpret_cast<const T*>(memory.data);
    }
  }
  // Rows [begin, begin + count) of the outermost dimension.
  [[nodiscard]] BasicTensor rows(size_t begin, size_t count) const;
  [[nodiscard]] BasicTensor reshape(const Shape& sizes) const {
    return BasicTensor(memory, dtype, sizes).with_largest(largest);
  }
  [[nodiscard]] BasicTensor with_largest(Largest* place) const {
    BasicTensor tensor = *this;
    tensor.largest = place;
    return tensor;
  }
};

using Tensor = BasicTensor<Memory>;
using ConstTensor = BasicTensor<ConstMemory>;

}  // namespace gxp
