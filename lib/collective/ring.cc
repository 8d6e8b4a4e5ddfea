#include "lib/collective/ring.h"

namespace gxp {
namespace {

// One channel, seen from one rank.
class Ring {
 public:
  Ring(int rank, const CallShape& shape, int channel)
      : rank_(rank),
        world_size_(shape.world_size),
        channels_(shape.channels),
        channel_(channel),
        direction_(channel % 2 == 0 ? 1 : -1),
        chunks_(shape) {}
  [[nodiscard]] int next() const { return (rank_ + world_size_ + direction_) % world_size_; }
  [[nodiscard]] int previous() const { return (rank_ + world_size_ - direction_) % world_size_; }
  // This channel's part of the chunk of the rank that lies `distance` behind this one.
  [[nodiscard]] Range part_behind(int distance) const {
    const Range chunk = chunks_[rank_ - direction_ * distance];
    const Range part = Chunks(chunk.count, channels_)[channel_];
    return {chunk.begin + part.begin, part.count};
  }

 private:
  int rank_;
  int world_size_;
  int channels_;
  int channel_;
  int direction_;
  Chunks chunks_;
};

template <class Act>
void for_each_ring(int rank, const CallShape& shape, const Act& act) {
  for (int channel = 0; channel < shape.channels; ++channel) act(Ring(rank, shape, channel));
}

}  // namespace

void ring_reduce_scatter(Primitives& comm, const CallShape& shape) {
  for (int step = 0; step < shape.world_size - 1; ++step) {
    for_each_ring(comm.rank(), shape,
                  [&](const Ring& ring) { comm.send(ring.next(), ring.part_behind(step + 1)); });
    // The arriving part carries step + 1 contributions; folding ours in makes step + 2.
    for_each_ring(comm.rank(), shape, [&](const Ring& ring) {
      comm.recv_and_fold(ring.previous(), ring.part_behind(step + 2));
    });
  }
}  // chunk `rank` is complete

void ring_all_gather(Primitives& comm, const CallShape& shape) {
  for (int step = 0; step < shape.world_size - 1; ++step) {
    for_each_ring(comm.rank(), shape,
                  [&](const Ring& ring) { comm.send(ring.next(), ring.part_behind(step)); });
    for_each_ring(comm.rank(), shape, [&](const Ring& ring) {
      comm.recv(ring.previous(), ring.part_behind(step + 1));
    });
  }
}

void ring_all_reduce(Primitives& comm, const CallShape& shape) {
  ring_reduce_scatter(comm, shape);
  ring_all_gather(comm, shape);
}

int ring_half_rounds(const CallShape& shape) { return shape.channels * (shape.world_size - 1); }
int ring_all_reduce_rounds(const CallShape& shape) { return 2 * ring_half_rounds(shape); }

// Each phase sends every chunk but one: the rank's own, then its successor's.
uint64_t ring_reduce_scatter_sent(int rank, const CallShape& shape) {
  return shape.count - Chunks(shape)[rank].count;
}
uint64_t ring_all_gather_sent(int rank, const CallShape& shape) {
  uint64_t sent = shape.count;
  for_each_ring(rank, shape, [&](const Ring& ring) { sent -= ring.part_behind(-1).count; });
  return sent;
}
uint64_t ring_all_reduce_sent(int rank, const CallShape& shape) {
  return ring_reduce_scatter_sent(rank, shape) + ring_all_gather_sent(rank, shape);
}

}  // namespace gxp
