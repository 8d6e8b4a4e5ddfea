#include "lib/program/placement.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

// Bytes of the arena as disjoint ranges that do not touch, in order.
class ByteSet {
 public:
  void add(size_t begin, size_t end) {
    auto from = std::ranges::lower_bound(ranges_, begin, {}, &Range::end);
    auto to = from;
    for (; to != ranges_.end() && to->begin <= end; ++to) {
      begin = std::min(begin, to->begin);
      end = std::max(end, to->end());
    }
    if (from == to) {
      ranges_.insert(from, {begin, end - begin});
      return;
    }
    *from = {begin, end - begin};
    ranges_.erase(from + 1, to);
  }

  // The end of a range that overlaps [begin, end).
  [[nodiscard]] std::optional<size_t> end_of_overlap(size_t begin, size_t end) const {
    const auto after = std::ranges::lower_bound(ranges_, end, {}, &Range::begin);
    if (after == ranges_.begin() || (after - 1)->end() <= begin) return std::nullopt;
    return (after - 1)->end();
  }

 private:
  std::vector<Range> ranges_;
};

// A segment tree over the operations. Of each node's span, `throughout` has the bytes that buffers
// take in all of it, put there as the node is one of the largest that their lives consist of, and
// `ever` those that are taken at any time of it. So what is taken at any time of a life is `ever` of
// the life's nodes and `throughout` of the nodes above them.
class Occupancy {
 public:
  explicit Occupancy(size_t ops) : leaves_(std::bit_ceil(std::max<size_t>(ops, 1))) {
    nodes_.resize(2 * leaves_);
  }

  // The lowest offset, 0 or a multiple of `alignment`, at which `bytes` bytes are free in all of the
  // life that was named last.
  [[nodiscard]] size_t lowest_gap(size_t bytes, size_t alignment) const {
    size_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      const auto pass = [&](const ByteSet& taken) {
        while (const auto end = taken.end_of_overlap(offset, offset + bytes)) {
          offset = round_up(*end, alignment);
          moved = true;
        }
      };
      for (const size_t node : life_) pass(nodes_[node].ever);
      for (const size_t node : above_) pass(nodes_[node].throughout);
    }
    return offset;
  }

  // Of operations `first` to `last`.
  void name_life(size_t first, size_t last) {
    life_.clear();
    above_.clear();
    size_t from = first + leaves_, to = last + leaves_ + 1;
    for (; from < to; from /= 2, to /= 2) {
      if (from % 2 == 1) life_.push_back(from++);
      if (to % 2 == 1) life_.push_back(--to);
    }
    for (const size_t node : life_)
      for (size_t up = node / 2; up > 0; up /= 2) above_.push_back(up);
    std::ranges::sort(above_);
    above_.erase(std::unique(above_.begin(), above_.end()), above_.end());
  }

  // In all of the life that was named last.
  void take(size_t begin, size_t end) {
    for (const size_t node : life_) {
      nodes_[node].throughout.add(begin, end);
      nodes_[node].ever.add(begin, end);
    }
    for (const size_t node : above_) nodes_[node].ever.add(begin, end);
  }

 private:
  struct Node {
    ByteSet throughout;
    ByteSet ever;
  };
  size_t leaves_;
  std::vector<Node> nodes_;  // 1: the root; the children of n are 2n and 2n + 1
  std::vector<size_t> life_;
  std::vector<size_t> above_;
};

}  // namespace

void place_in_arena(std::span<BufferSpec> buffers, std::span<const BufferId> order, size_t ops) {
  // Ends are rounded up to what every buffer is aligned to at least: nothing fits in between, and
  // neighbours become one range.
  size_t alignment = SIZE_MAX;
  for (const BufferId id : order) alignment = std::min(alignment, buffers[size_t(id)].alignment);
  Occupancy occupancy(ops);
  for (const BufferId id : order) {
    BufferSpec& buffer = buffers[size_t(id)];
    buffer.offset = 0;
    if (buffer.bytes == 0) continue;
    occupancy.name_life(size_t(buffer.first), size_t(buffer.last));
    buffer.offset = occupancy.lowest_gap(buffer.bytes, buffer.alignment);
    occupancy.take(buffer.offset, round_up(buffer.offset + buffer.bytes, alignment));
  }
}

}  // namespace gxp
