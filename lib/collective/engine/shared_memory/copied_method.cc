#include "lib/collective/engine/shared_memory/copied_method.h"

#include <cstring>

namespace gxp {
namespace {

// Whether rank `mine` takes something from `rank`.
bool needs(const Call& call, int mine, int rank) {
  if (root_gives(call.collective)) return rank == call.root;
  return !has_root(call.collective) || mine == call.root;
}

}  // namespace

CopiedMethod::CopiedMethod(GroupSync& sync, PartMover& mover) : sync_(sync), mover_(mover) {
  copies_.inputs.resize(size_t(sync.world_size()));
}

void CopiedMethod::run(const Invocation& inv) {
  sync_.wait_for_line(inv);
  copy(inv);
  sync_.publish_line(inv);
  prefetch_next(inv);
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    if (rank != inv.rank && needs(inv.call, inv.rank, rank)) sync_.await(inv, rank);
  }
  take(inv);
}

std::byte* CopiedMethod::copy_of(const Invocation& inv, int rank) const {
  const bool fits_line = inv.shape.inputs[size_t(rank)].count <= SharedLine::kBytes;
  return fits_line ? sync_.line(rank, inv.index).payload
                   : sync_.slots(rank).copies[inv.index % SharedSlots::kCopies];
}

void CopiedMethod::copy(const Invocation& inv) {
  const size_t bytes = inv.own_input().count;
  if (bytes == 0) return;
  if (bytes > SharedLine::kBytes) sync_.wait_for_copy(inv);
  const Memory slot{copy_of(inv, inv.rank), bytes, MemorySpace::kHost};
  std::memcpy(slot.data, inv.input_data, bytes);
  if (inv.is_scaled()) scale(slot, inv.call.dtype, inv.call.factor);
}

// Calls are often followed by others like them.
void CopiedMethod::prefetch_next(const Invocation& inv) {
  const size_t bytes = inv.own_input().count;
  prefetch_to_write(sync_.slots(inv.rank).copies[(inv.index + 1) % SharedSlots::kCopies],
                    bytes > SharedLine::kBytes ? bytes : 0);
}

void CopiedMethod::take(const Invocation& inv) {
  for (int rank = 0; rank < sync_.world_size(); ++rank)
    copies_.inputs[size_t(rank)] = copy_of(inv, rank);
  // What was stored a moment ago is slow to load by other widths.
  if (!inv.is_scaled()) copies_.inputs[size_t(inv.rank)] = inv.input_data;
  mover_.take(inv, copies_);
}

}  // namespace gxp
