#include "lib/tensor/tensor.h"

#include <algorithm>

namespace gxp {

Shape::Shape(std::initializer_list<size_t> sizes) : rank_(int(sizes.size())) {
  GXP_ASSERT(sizes.size() <= sizes_.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
}

size_t Shape::count() const {
  size_t count = 1;
  for (int i = 0; i < rank_; ++i) count *= (*this)[i];
  return count;
}

size_t Shape::columns() const { return rank_ == 0 ? 1 : (*this)[rank_ - 1]; }

size_t Shape::rows() const {
  size_t rows = 1;
  for (int i = 0; i + 1 < rank_; ++i) rows *= (*this)[i];
  return rows;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

template <class Bytes>
BasicTensor<Bytes> BasicTensor<Bytes>::rows(size_t begin, size_t count) const {
  GXP_ASSERT(shape.rank() > 0 && begin <= shape[0] && count <= shape[0] - begin);
  const size_t row_bytes = shape[0] == 0 ? 0 : memory.bytes / shape[0];
  BasicTensor part = *this;
  part.memory = memory.slice(begin * row_bytes, count * row_bytes);
  part.shape.resize_outermost(count);
  part.largest = nullptr;
  return part;
}

template struct BasicTensor<Memory>;
template struct BasicTensor<ConstMemory>;

}  // namespace gxp
