#include "lib/collective/algorithm/halving_doubling.h"

#include "lib/collective/algorithm/reduction_tree.h"

namespace gxp {
namespace {

// The core ranks and the chunks that they stand for.
class Core : public CoreRanks {
 public:
  Core(int rank, const CallShape& shape)
      : CoreRanks(rank, shape.world_size), chunks_(shape), parts_(shape.count, size()) {}
  [[nodiscard]] Range chunk_of(int rank) const { return chunks_[rank]; }
  // What core rank `index` holds of an all-reduce when it has halved it with those at every
  // distance below `distance`.
  [[nodiscard]] Range share_of(int index, int distance) const {
    int first = 0;
    for (int bit = 1, half = size() / 2; bit < distance; bit *= 2, half /= 2)
      first += (index & bit) != 0 ? half : 0;
    return parts_.span(first, first + size() / distance);
  }
  // The chunks of the aligned group of `group_size` core ranks that `index` belongs to.
  [[nodiscard]] Range group_of(int index, int group_size) const {
    const int first = index / group_size * group_size;
    return chunks_.span(rank_at(first), rank_at(first + group_size));
  }

 private:
  Chunks chunks_;  // one a rank
  Chunks parts_;   // one a core rank
};

void absorb_pair(Primitives& comm, const Core& core, Range all) {
  if (!core.is_paired()) return;
  if (core.is_active()) {
    comm.recv_and_fold(core.neighbour(), all);
  } else {
    comm.send(core.neighbour(), all);
  }
}

void serve_pair(Primitives& comm, const Core& core, Range range) {
  if (!core.is_paired()) return;
  if (core.is_active()) {
    comm.send(core.neighbour(), range);
  } else {
    comm.recv(core.neighbour(), range);
  }
}

void halve(Primitives& comm, const Core& core) {
  if (!core.is_active()) return;
  for (int distance = 1; distance < core.size(); distance *= 2) {
    const int peer = core.index() ^ distance;
    const Range kept = core.share_of(core.index(), 2 * distance);
    const Range leaving = core.share_of(peer, 2 * distance);
    comm.send_and_fold(core.rank_at(peer), leaving, core.rank_at(peer), kept);
  }
}

// As halve(), but core rank i is left with the chunks of its members.
void halve_to_owners(Primitives& comm, const Core& core) {
  if (!core.is_active()) return;
  for (int distance = 1; distance < core.size(); distance *= 2) {
    const int peer = core.rank_at(core.index() ^ distance);
    for (int i = core.index() % (2 * distance); i < core.size(); i += 2 * distance)
      comm.send_and_fold(peer, core.group_of(i ^ distance, 1), peer, core.group_of(i, 1));
  }
}

void double_again(Primitives& comm, const Core& core) {
  if (!core.is_active()) return;
  for (int distance = core.size() / 2; distance >= 1; distance /= 2) {
    const int peer = core.index() ^ distance;
    const Range held = core.share_of(core.index(), 2 * distance);
    const Range arriving = core.share_of(peer, 2 * distance);
    comm.send_and_recv(core.rank_at(peer), held, core.rank_at(peer), arriving);
  }
}

void gather_by_doubling(Primitives& comm, const Core& core) {
  if (!core.is_active()) return;
  for (int distance = 1; distance < core.size(); distance *= 2) {
    const int peer = core.index() ^ distance;
    const Range held = core.group_of(core.index(), distance);
    const Range arriving = core.group_of(peer, distance);
    comm.send_and_recv(core.rank_at(peer), held, core.rank_at(peer), arriving);
  }
}

}  // namespace

void halving_doubling_reduce_scatter(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  absorb_pair(comm, core, {0, shape.count});
  halve_to_owners(comm, core);
  serve_pair(comm, core, core.chunk_of(comm.rank() | 1));
}

void halving_doubling_all_gather(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  if (core.is_paired() && core.is_active()) {
    comm.recv(core.neighbour(), core.chunk_of(core.neighbour()));
  } else if (core.is_paired()) {
    comm.send(core.neighbour(), core.chunk_of(comm.rank()));
  }
  gather_by_doubling(comm, core);
  serve_pair(comm, core, {0, shape.count});
}

void halving_doubling_all_reduce(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  absorb_pair(comm, core, {0, shape.count});
  halve(comm, core);
  double_again(comm, core);
  serve_pair(comm, core, {0, shape.count});
}

void recursive_doubling_all_reduce(Primitives& comm, const CallShape& shape) {
  const Core core(comm.rank(), shape);
  const Range all{0, shape.count};
  const Range theirs{shape.count, shape.count};
  absorb_pair(comm, core, all);
  for (int distance = 1; core.is_active() && distance < core.size(); distance *= 2) {
    const int peer = core.rank_at(core.index() ^ distance);
    comm.send_and_recv(peer, all, peer, theirs);
    comm.fold(theirs, all);
  }
  serve_pair(comm, core, all);
}

int halving_doubling_reduce_scatter_rounds(const CallShape& shape) {
  const CoreRanks core(0, shape.world_size);
  return core.size() - 1 + (core.is_paired() ? 2 : 0);
}

int recursive_doubling_rounds(const CallShape& shape) {
  const CoreRanks core(0, shape.world_size);
  return core.log2_size() + (core.is_paired() ? 2 : 0);
}

int halving_doubling_all_reduce_rounds(const CallShape& shape) {
  const CoreRanks core(0, shape.world_size);
  return 2 * core.log2_size() + (core.is_paired() ? 2 : 0);
}

uint64_t halving_doubling_reduce_scatter_sent(int rank, const CallShape& shape) {
  const Core core(rank, shape);
  if (!core.is_active()) return shape.count;
  const size_t handed_out = core.is_paired() ? core.chunk_of(core.neighbour()).count : 0;
  return shape.count - core.group_of(core.index(), 1).count + handed_out;
}

size_t recursive_doubling_scratch(int rank, const CallShape& shape) {
  const CoreRanks core(rank, shape.world_size);
  return core.is_active() && core.size() > 1 ? shape.count : 0;
}

}  // namespace gxp
