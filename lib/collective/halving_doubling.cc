#include "lib/collective/halving_doubling.h"

#include "lib/collective/core_ranks.h"

namespace gxp {
namespace {

// The core ranks and the chunks that they stand for.
class Core : public CoreRanks {
 public:
  Core(int rank, const CallShape& shape) : CoreRanks(rank, shape.world_size), chunks_(shape) {}
  [[nodiscard]] Range chunk_of(int rank) const { return chunks_[rank]; }
  // The chunks of the aligned group of `group_size` core ranks that `index` belongs to.
  [[nodiscard]] Range group_of(int index, int group_size) const {
    const int first = index / group_size * group_size;
    return chunks_.span(rank_at(first), rank_at(first + group_size));
  }

 private:
  Chunks chunks_;
};

void fold_in(Primitives& comm, const Core& core, Range all) {
  if (!core.in_pair()) return;
  if (core.works()) {
    comm.recv_and_fold(core.neighbour(), all);
  } else {
    comm.send(core.neighbour(), all);
  }
}

void hand_out(Primitives& comm, const Core& core, Range range) {
  if (!core.in_pair()) return;
  if (core.works()) {
    comm.send(core.neighbour(), range);
  } else {
    comm.recv(core.neighbour(), range);
  }
}

void halve(Primitives& comm, const Core& core) {
  if (!core.works()) return;
  for (int distance = core.size() / 2; distance >= 1; distance /= 2) {
    const int peer = core.index() ^ distance;
    const Range kept = core.group_of(core.index(), distance);
    const Range leaving = core.group_of(peer, distance);
    comm.send_and_fold(core.rank_at(peer), leaving, core.rank_at(peer), kept);
  }
}  // the group of one is complete

void gather_by_doubling(Primitives& comm, const Core& core) {
  if (!core.works()) return;
  for (int distance = 1; distance < core.size(); distance *= 2) {
    const int peer = core.index() ^ distance;
    const Range held = core.group_of(core.index(), distance);
    const Range arriving = core.group_of(peer, distance);
    comm.send_and_recv(core.rank_at(peer), held, core.rank_at(peer), arriving);
  }
}

uint64_t halving_sent(const Core& core, size_t count) {
  return count - core.group_of(core.index(), 1).count;
}

uint64_t doubling_sent(const Core& core) {
  uint64_t sent = 0;
  for (int held = 1; held < core.size(); held *= 2) sent += core.group_of(core.index(), held).count;
  return sent;
}

}  // namespace

void halving_doubling_reduce_scatter(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  fold_in(comm, core, {0, shape.count});
  halve(comm, core);
  hand_out(comm, core, core.chunk_of(comm.rank() | 1));
}

void halving_doubling_all_gather(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  if (core.in_pair() && core.works()) {
    comm.recv(core.neighbour(), core.chunk_of(core.neighbour()));
  } else if (core.in_pair()) {
    comm.send(core.neighbour(), core.chunk_of(comm.rank()));
  }
  gather_by_doubling(comm, core);
  hand_out(comm, core, {0, shape.count});
}

void halving_doubling_all_reduce(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  fold_in(comm, core, {0, shape.count});
  halve(comm, core);
  gather_by_doubling(comm, core);
  hand_out(comm, core, {0, shape.count});
}

int halving_doubling_half_rounds(const CallShape& shape) {
  const CoreRanks core(0, shape.world_size);
  return core.log2_size() + (core.in_pair() ? 2 : 0);
}

int halving_doubling_all_reduce_rounds(const CallShape& shape) {
  return halving_doubling_half_rounds(shape) + CoreRanks(0, shape.world_size).log2_size();
}

uint64_t halving_doubling_reduce_scatter_sent(int rank, const CallShape& shape) {
  const Core core(rank, shape);
  if (!core.works()) return shape.count;
  return halving_sent(core, shape.count) +
         (core.in_pair() ? core.chunk_of(core.neighbour()).count : 0);
}

uint64_t halving_doubling_all_gather_sent(int rank, const CallShape& shape) {
  const Core core(rank, shape);
  if (!core.works()) return core.chunk_of(rank).count;
  return doubling_sent(core) + (core.in_pair() ? shape.count : 0);
}

uint64_t halving_doubling_all_reduce_sent(int rank, const CallShape& shape) {
  const Core core(rank, shape);
  if (!core.works()) return shape.count;
  return halving_sent(core, shape.count) + doubling_sent(core) + (core.in_pair() ? shape.count : 0);
}

}  // namespace gxp
