#include "lib/collective/algorithm/bruck.h"

#include <algorithm>

namespace gxp {
namespace {

// The copy of the buffer that starts with the chunk of `rank`, behind the buffer.
class Blocks {
 public:
  Blocks(int rank, const CallShape& shape)
      : rank_(rank), world_size_(shape.world_size), chunks_(shape), size_(shape.count) {}
  // Blocks first .. last - 1.
  [[nodiscard]] Range span(int first, int last) const {
    return {size_ + begin_of(first), begin_of(last) - begin_of(first)};
  }
  // Where the buffer holds blocks 1 .. until_wrap() - 1, and where those from until_wrap() on.
  [[nodiscard]] int until_wrap() const { return world_size_ - rank_; }
  [[nodiscard]] Range head() const { return chunks_.span(rank_ + 1, world_size_); }
  [[nodiscard]] Range tail() const { return chunks_.span(0, rank_); }

 private:
  [[nodiscard]] size_t begin_of(int block) const {
    if (block <= until_wrap()) return chunks_.span(rank_, rank_ + block).count;
    return chunks_.span(rank_, world_size_).count + chunks_.span(0, block - until_wrap()).count;
  }

  int rank_;
  int world_size_;
  Chunks chunks_;
  size_t size_;
};

// Blocks with bit `distance`, below p.
int moving_blocks(int distance, int p) {
  return p / (2 * distance) * distance + std::max(0, p % (2 * distance) - distance);
}

// Calls act(range, packed) for each run of blocks with bit `distance` and for its place when they
// are put side by side from `packed_begin` on.
template <class Act>
void for_each_moving_run(const Blocks& blocks, int distance, int p, size_t packed_begin,
                         const Act& act) {
  for (int first = distance; first < p; first += 2 * distance) {
    const Range run = blocks.span(first, std::min(first + distance, p));
    act(run, Range{packed_begin, run.count});
    packed_begin += run.count;
  }
}

}  // namespace

void bruck_all_gather(Primitives& comm, const CallShape& shape) {
  const int p = shape.world_size;
  const int rank = comm.rank();
  if (p == 1) return;
  const Blocks blocks(rank, shape);
  comm.copy(Chunks(shape)[rank], blocks.span(0, 1));
  for (int distance = 1; distance < p; distance *= 2) {
    const int moving = std::min(distance, p - distance);
    const int to = (rank + p - distance) % p;
    const int from = (rank + distance) % p;
    comm.send_and_recv(to, blocks.span(0, moving), from, blocks.span(distance, distance + moving));
  }
  comm.copy(blocks.span(1, blocks.until_wrap()), blocks.head());
  comm.copy(blocks.span(blocks.until_wrap(), p), blocks.tail());
}

void bruck_all_to_all(Primitives& comm, const CallShape& shape) {
  const int p = shape.world_size;
  const int rank = comm.rank();
  if (p == 1) return;
  const Chunks chunks(shape);
  const Blocks blocks(rank, shape);
  comm.copy(blocks.head(), blocks.span(1, blocks.until_wrap()));
  comm.copy(blocks.tail(), blocks.span(blocks.until_wrap(), p));
  for (int distance = 1; distance < p; distance *= 2) {
    // At most half of the blocks move; they leave from the third buffer and arrive in it.
    const size_t moving = size_t(moving_blocks(distance, p)) * chunks[0].count;
    const Range leaving{2 * shape.count, moving};
    const Range arriving{leaving.end(), moving};
    for_each_moving_run(blocks, distance, p, leaving.begin,
                        [&](Range run, Range packed) { comm.copy(run, packed); });
    comm.send_and_recv((rank + distance) % p, leaving, (rank + p - distance) % p, arriving);
    for_each_moving_run(blocks, distance, p, arriving.begin,
                        [&](Range run, Range packed) { comm.copy(packed, run); });
  }
  // Block i has come from rank - i.
  for (int i = 1; i < p; ++i) comm.copy(blocks.span(i, i + 1), chunks[rank - i]);
}

size_t bruck_all_gather_scratch(int /*rank*/, const CallShape& shape) {
  return shape.world_size == 1 ? 0 : shape.count;
}
size_t bruck_all_to_all_scratch(int /*rank*/, const CallShape& shape) {
  return shape.world_size == 1 ? 0 : 2 * shape.count;
}

}  // namespace gxp
