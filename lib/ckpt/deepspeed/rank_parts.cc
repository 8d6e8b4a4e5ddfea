#include "lib/ckpt/deepspeed/rank_parts.h"

#include <algorithm>
#include <utility>

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

}  // namespace

NamedTensor gather_parts(TensorInfo info, RankParts parts, RankPlacement placement) {
  const size_t element = size_of(info.dtype);
  return {std::move(info),
          [parts = std::move(parts), placement, element](uint64_t begin, Memory out) {
            read_placed(*parts, placement, element, begin, out);
          }};
}

}  // namespace gxp
