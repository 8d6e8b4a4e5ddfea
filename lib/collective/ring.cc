#include "lib/collective/ring.h"

#include "lib/collective/algorithm.h"

namespace gxp {
namespace {

int next(const Primitives& comm) { return (comm.rank() + 1) % comm.world_size(); }
int previous(const Primitives& comm) {
  return (comm.rank() + comm.world_size() - 1) % comm.world_size();
}

}  // namespace

void ring_reduce_scatter(Primitives& comm, size_t count, int /*root*/) {
  const Chunks chunks(count, comm.world_size());
  for (int step = 0; step < comm.world_size() - 1; ++step) {
    // The arriving chunk carries step + 1 contributions; folding ours in makes step + 2.
    const Range leaving = chunks[comm.rank() - 1 - step];
    const Range arriving = chunks[comm.rank() - 2 - step];
    comm.send_and_fold(next(comm), leaving, previous(comm), arriving);
  }
}  // chunks[rank] is complete

void ring_all_gather(Primitives& comm, size_t count, int /*root*/) {
  const Chunks chunks(count, comm.world_size());
  for (int step = 0; step < comm.world_size() - 1; ++step) {
    const Range leaving = chunks[comm.rank() - step];
    const Range arriving = chunks[comm.rank() - 1 - step];
    comm.send_and_recv(next(comm), leaving, previous(comm), arriving);
  }
}

void ring_all_reduce(Primitives& comm, size_t count, int root) {
  ring_reduce_scatter(comm, count, root);
  ring_all_gather(comm, count, root);
}

int ring_half_rounds(int world_size) { return world_size - 1; }
int ring_all_reduce_rounds(int world_size) { return 2 * (world_size - 1); }

// Each phase sends every chunk but one: the rank's own, then its successor's.
uint64_t ring_reduce_scatter_sent(int rank, int world_size, size_t count, int /*root*/) {
  return count - Chunks(count, world_size)[rank].count;
}
uint64_t ring_all_gather_sent(int rank, int world_size, size_t count, int /*root*/) {
  return count - Chunks(count, world_size)[rank + 1].count;
}
uint64_t ring_all_reduce_sent(int rank, int world_size, size_t count, int root) {
  return ring_reduce_scatter_sent(rank, world_size, count, root) +
         ring_all_gather_sent(rank, world_size, count, root);
}

}  // namespace gxp
