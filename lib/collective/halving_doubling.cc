#include "lib/collective/halving_doubling.h"

#include <algorithm>
#include <bit>

#include "lib/collective/algorithm.h"

namespace gxp {
namespace {

// Where a rank stands among the core ranks.
class Core {
 public:
  Core(int rank, int world_size, size_t count)
      : size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(world_size)))),
        pairs_(world_size - size_),
        rank_(rank),
        index_(rank < 2 * pairs_ ? rank / 2 : rank - pairs_),
        chunks_(count, world_size) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] bool in_pair() const { return rank_ < 2 * pairs_; }
  [[nodiscard]] bool works() const { return !in_pair() || rank_ % 2 == 0; }
  [[nodiscard]] int neighbour() const { return rank_ ^ 1; }  // the other member of the pair
  [[nodiscard]] int rank_at(int index) const { return index + std::min(index, pairs_); }
  [[nodiscard]] Range chunk_of(int rank) const { return chunks_[rank]; }
  // The chunks of the aligned group of `group_size` core ranks that `index` belongs to.
  [[nodiscard]] Range group_of(int index, int group_size) const {
    const int first = index / group_size * group_size;
    return chunks_.span(rank_at(first), rank_at(first + group_size));
  }

 private:
  int size_;
  int pairs_;
  int rank_;
  int index_;
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

void halving_doubling_reduce_scatter(Primitives& comm, size_t count, int /*root*/) {
  const Core core(comm.rank(), comm.world_size(), count);
  fold_in(comm, core, {0, count});
  halve(comm, core);
  hand_out(comm, core, core.chunk_of(comm.rank() | 1));
}

void halving_doubling_all_gather(Primitives& comm, size_t count, int /*root*/) {
  const Core core(comm.rank(), comm.world_size(), count);
  if (core.in_pair() && core.works()) {
    comm.recv(core.neighbour(), core.chunk_of(core.neighbour()));
  } else if (core.in_pair()) {
    comm.send(core.neighbour(), core.chunk_of(comm.rank()));
  }
  gather_by_doubling(comm, core);
  hand_out(comm, core, {0, count});
}

void halving_doubling_all_reduce(Primitives& comm, size_t count, int /*root*/) {
  const Core core(comm.rank(), comm.world_size(), count);
  fold_in(comm, core, {0, count});
  halve(comm, core);
  gather_by_doubling(comm, core);
  hand_out(comm, core, {0, count});
}

int halving_doubling_half_rounds(int world_size) {
  const Core core(0, world_size, 0);
  return std::countr_zero(static_cast<unsigned>(core.size())) + (core.in_pair() ? 2 : 0);
}

int halving_doubling_all_reduce_rounds(int world_size) {
  const Core core(0, world_size, 0);
  return 2 * std::countr_zero(static_cast<unsigned>(core.size())) + (core.in_pair() ? 2 : 0);
}

uint64_t halving_doubling_reduce_scatter_sent(int rank, int world_size, size_t count, int) {
  const Core core(rank, world_size, count);
  if (!core.works()) return count;
  return halving_sent(core, count) + (core.in_pair() ? core.chunk_of(core.neighbour()).count : 0);
}

uint64_t halving_doubling_all_gather_sent(int rank, int world_size, size_t count, int) {
  const Core core(rank, world_size, count);
  if (!core.works()) return core.chunk_of(rank).count;
  return doubling_sent(core) + (core.in_pair() ? count : 0);
}

uint64_t halving_doubling_all_reduce_sent(int rank, int world_size, size_t count, int) {
  const Core core(rank, world_size, count);
  if (!core.works()) return count;
  return halving_sent(core, count) + doubling_sent(core) + (core.in_pair() ? count : 0);
}

}  // namespace gxp
