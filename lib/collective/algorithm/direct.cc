#include "lib/collective/algorithm/direct.h"

#include "lib/collective/algorithm/reduction_tree.h"

namespace gxp {
namespace {

// Peers in the order in which this rank sends to them, and receives from them.
template <class Act>
void for_each_after(const Primitives& comm, const Act& act) {
  const int p = comm.world_size();
  for (int i = 1; i < p; ++i) act((comm.rank() + i) % p);
}
template <class Act>
void for_each_before(const Primitives& comm, const Act& act) {
  const int p = comm.world_size();
  for (int i = 1; i < p; ++i) act((comm.rank() + p - i) % p);
}

// Where rank `rank` keeps what belongs to `peer`: slots of `count` elements behind the buffer.
Range slot_of(int peer, int rank, const CallShape& shape, size_t count) {
  const auto index = size_t(peer < rank ? peer : peer - 1);
  return {shape.count + index * count, count};
}
size_t slots(const CallShape& shape, size_t count) { return size_t(shape.world_size - 1) * count; }

// Receives every other rank's version of `mine` and folds them all into it.
void receive_and_fold_versions(Primitives& comm, const CallShape& shape, Range mine) {
  const auto version_of = [&](int rank) {
    return rank == comm.rank() ? mine : slot_of(rank, comm.rank(), shape, mine.count);
  };
  for_each_before(comm, [&](int peer) { comm.recv(peer, version_of(peer)); });
  fold_versions(comm, version_of);
}

}  // namespace

void direct_reduce_scatter(Primitives& comm, const CallShape& shape) {
  const Chunks chunks(shape);
  for_each_after(comm, [&](int peer) { comm.send(peer, chunks[peer]); });
  receive_and_fold_versions(comm, shape, chunks[comm.rank()]);
}

void direct_all_gather(Primitives& comm, const CallShape& shape) {
  const Chunks chunks(shape);
  for_each_after(comm, [&](int peer) { comm.send(peer, chunks[comm.rank()]); });
  for_each_before(comm, [&](int peer) { comm.recv(peer, chunks[peer]); });
}

void direct_all_reduce(Primitives& comm, const CallShape& shape) {
  direct_reduce_scatter(comm, shape);
  direct_all_gather(comm, shape);
}

void one_shot_all_reduce(Primitives& comm, const CallShape& shape) {
  const Range all{0, shape.count};
  for_each_after(comm, [&](int peer) { comm.send(peer, all); });
  receive_and_fold_versions(comm, shape, all);
}

void direct_broadcast(Primitives& comm, const CallShape& shape) {
  const Range all{0, shape.count};
  if (comm.rank() != shape.root) return comm.recv(shape.root, all);
  for_each_after(comm, [&](int peer) { comm.send(peer, all); });
}

void direct_reduce(Primitives& comm, const CallShape& shape) {
  const Range all{0, shape.count};
  if (comm.rank() != shape.root) return comm.send(shape.root, all);
  receive_and_fold_versions(comm, shape, all);
}

void direct_gather(Primitives& comm, const CallShape& shape) {
  const Chunks chunks(shape);
  if (comm.rank() != shape.root) return comm.send(shape.root, chunks[comm.rank()]);
  for_each_before(comm, [&](int peer) { comm.recv(peer, chunks[peer]); });
}

void direct_scatter(Primitives& comm, const CallShape& shape) {
  const Chunks chunks(shape);
  if (comm.rank() != shape.root) return comm.recv(shape.root, chunks[comm.rank()]);
  for_each_after(comm, [&](int peer) { comm.send(peer, chunks[peer]); });
}

void direct_all_to_all(Primitives& comm, const CallShape& shape) {
  const Chunks chunks(shape);
  for_each_after(comm, [&](int peer) {
    const Range leaving = slot_of(peer, comm.rank(), shape, chunks[peer].count);
    comm.copy(chunks[peer], leaving);
    comm.send(peer, leaving);
  });
  for_each_before(comm, [&](int peer) { comm.recv(peer, chunks[peer]); });
}

int direct_rounds(const CallShape& shape) { return shape.world_size - 1; }
int direct_all_reduce_rounds(const CallShape& shape) { return 2 * direct_rounds(shape); }

uint64_t direct_own_to_all_sent(int rank, const CallShape& shape) {
  return slots(shape, Chunks(shape)[rank].count);
}
uint64_t direct_all_reduce_sent(int rank, const CallShape& shape) {
  return sent_all_but_own_chunk(rank, shape) + direct_own_to_all_sent(rank, shape);
}
uint64_t one_shot_sent(int /*rank*/, const CallShape& shape) { return slots(shape, shape.count); }
size_t direct_chunks_scratch(int rank, const CallShape& shape) {
  return slots(shape, Chunks(shape)[rank].count);
}
size_t direct_reduce_scratch(int rank, const CallShape& shape) {
  return rank == shape.root ? slots(shape, shape.count) : 0;
}
size_t one_shot_scratch(int /*rank*/, const CallShape& shape) { return slots(shape, shape.count); }

}  // namespace gxp
