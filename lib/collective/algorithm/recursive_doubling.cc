#include "lib/collective/algorithm/recursive_doubling.h"

#include "lib/collective/algorithm/reduction_tree.h"

namespace gxp {

void recursive_doubling_all_reduce(Primitives& comm, const CallShape& shape) {
  const CoreRanks core(comm.rank(), shape.world_size);
  const Range all{0, shape.count};
  const Range theirs{shape.count, shape.count};
  if (!core.is_active()) {
    comm.send(core.neighbour(), all);
    comm.recv(core.neighbour(), all);
    return;
  }
  if (core.is_paired()) comm.recv_and_fold(core.neighbour(), all);
  for (int distance = 1; distance < core.size(); distance *= 2) {
    const int peer = core.rank_at(core.index() ^ distance);
    comm.send_and_recv(peer, all, peer, theirs);
    comm.fold(theirs, all);
  }
  if (core.is_paired()) comm.send(core.neighbour(), all);
}

int recursive_doubling_rounds(const CallShape& shape) {
  const CoreRanks core(0, shape.world_size);
  return core.log2_size() + (core.is_paired() ? 2 : 0);
}

size_t recursive_doubling_scratch(int rank, const CallShape& shape) {
  const CoreRanks core(rank, shape.world_size);
  return core.is_active() && core.size() > 1 ? shape.count : 0;
}

}  // namespace gxp
