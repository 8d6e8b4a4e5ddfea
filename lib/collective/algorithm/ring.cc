#include "lib/collective/algorithm/ring.h"

#include <algorithm>
#include <vector>

namespace gxp {
namespace {

// One channel, seen from one rank.
class ChannelRing {
 public:
  ChannelRing(int rank, const CallShape& shape, int channel)
      : world_size_(shape.world_size),
        channels_(shape.channels),
        channel_(channel),
        chunks_(shape) {
    const auto size = size_t(world_size_);
    const size_t orders = std::max<size_t>(shape.orders.rings.size() / size, 1);
    if (!shape.orders.rings.empty())
      order_ = shape.orders.rings.subspan(size_t(channel) % orders * size, size);
    direction_ = size_t(channel) / orders % 2 == 0 ? 1 : -1;
    place_ = order_.empty() ? rank : int(std::ranges::find(order_, rank) - order_.begin());
  }
  [[nodiscard]] int next() const { return rank_behind(-1); }
  [[nodiscard]] int previous() const { return rank_behind(1); }
  // This channel's part of the chunk of the rank that lies `distance` behind this one.
  [[nodiscard]] Range part_behind(int distance) const {
    const Range chunk = chunks_[rank_behind(distance)];
    const Range part = Chunks(chunk.count, channels_)[channel_];
    return {chunk.begin + part.begin, part.count};
  }

 private:
  // At most once around.
  [[nodiscard]] int rank_behind(int distance) const {
    const int place = (place_ + 2 * world_size_ - direction_ * distance) % world_size_;
    return order_.empty() ? place : order_[size_t(place)];
  }

  int world_size_;
  int channels_;
  int channel_;
  int direction_ = 1;
  std::span<const int> order_;
  int place_ = 0;  // of this rank in it
  Chunks chunks_;
};

std::vector<ChannelRing> rings_of(int rank, const CallShape& shape) {
  std::vector<ChannelRing> rings;
  for (int channel = 0; channel < shape.channels; ++channel)
    rings.emplace_back(rank, shape, channel);
  return rings;
}

}  // namespace

void ring_reduce_scatter(Primitives& comm, const CallShape& shape) {
  const std::vector<ChannelRing> rings = rings_of(comm.rank(), shape);
  for (int step = 0; step < shape.world_size - 1; ++step) {
    for (const ChannelRing& ring : rings) comm.send(ring.next(), ring.part_behind(step + 1));
    // The arriving part carries step + 1 contributions; folding ours in makes step + 2.
    for (const ChannelRing& ring : rings)
      comm.recv_and_fold(ring.previous(), ring.part_behind(step + 2));
  }
}  // chunk `rank` is complete

void ring_all_gather(Primitives& comm, const CallShape& shape) {
  const std::vector<ChannelRing> rings = rings_of(comm.rank(), shape);
  for (int step = 0; step < shape.world_size - 1; ++step) {
    for (const ChannelRing& ring : rings) comm.send(ring.next(), ring.part_behind(step));
    for (const ChannelRing& ring : rings) comm.recv(ring.previous(), ring.part_behind(step + 1));
  }
}

void ring_all_reduce(Primitives& comm, const CallShape& shape) {
  ring_reduce_scatter(comm, shape);
  ring_all_gather(comm, shape);
}

int ring_half_rounds(const CallShape& shape) { return shape.channels * (shape.world_size - 1); }
int ring_all_reduce_rounds(const CallShape& shape) { return 2 * ring_half_rounds(shape); }

// Each phase sends every chunk but one: the reduce-scatter the rank's own, the all-gather its
// successor's.
uint64_t ring_all_gather_sent(int rank, const CallShape& shape) {
  uint64_t sent = shape.count;
  for (const ChannelRing& ring : rings_of(rank, shape)) sent -= ring.part_behind(-1).count;
  return sent;
}
uint64_t ring_all_reduce_sent(int rank, const CallShape& shape) {
  return sent_all_but_own_chunk(rank, shape) + ring_all_gather_sent(rank, shape);
}

}  // namespace gxp
