#include "lib/ckpt/deepspeed/rank_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/dtype.h"

namespace gxp {
namespace {

void read_placed(const std::vector<NamedTensor>& parts, RankPlacement placement, size_t element,
                 uint64_t begin, Memory out) {
  uint64_t position = placement.start + begin;
  uint64_t left = out.bytes / element;
  for (std::byte* to = out.data; left > 0;) {
    const uint64_t within = position % placement.width;
    const uint64_t count = std::min(left, placement.width - within);
    parts.at(position / placement.width).read(placement.base + within, {to, count * element});
    to += count * element;
    position += count;
    left -= count;
  }
}

// The narrow elements are read into the upper half of `out` and widened from the front, so that
// none is overwritten before it is used.
template <class Narrow>
void read_widened(const NamedTensor& tensor, uint64_t begin, Memory out) {
  const size_t count = out.bytes / sizeof(float);
  std::byte* from = out.data + count * (sizeof(float) - sizeof(Narrow));
  tensor.read(begin, {from, count * sizeof(Narrow)});
  for (size_t i = 0; i < count; ++i) {
    Narrow narrow;
    std::memcpy(&narrow.bits, from + i * sizeof(Narrow), sizeof(Narrow));
    const auto wide = float(narrow);
    std::memcpy(out.data + i * sizeof(float), &wide, sizeof(float));
  }
}

}  // namespace

NamedTensor gather_parts(TensorInfo info, RankParts parts, RankPlacement placement) {
  const size_t element = size_of(info.dtype);
  return {std::move(info),
          [parts = std::move(parts), placement, element](uint64_t begin, Memory out) {
            read_placed(*parts, placement, element, begin, out);
          }};
}

NamedTensor widened(NamedTensor tensor) {
  const bool is_bf16 = tensor.info.dtype == StorageDType::kBF16;
  if (!is_bf16 && tensor.info.dtype != StorageDType::kF16) return tensor;
  TensorInfo info = tensor.info;
  info.dtype = StorageDType::kF32;
  return {std::move(info), [narrow = std::move(tensor), is_bf16](uint64_t begin, Memory out) {
            is_bf16 ? read_widened<BFloat16>(narrow, begin, out)
                    : read_widened<Float16>(narrow, begin, out);
          }};
}

}  // namespace gxp
