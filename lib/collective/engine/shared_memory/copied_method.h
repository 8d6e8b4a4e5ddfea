// The method of small inputs (shared_executor.h): each rank copies its whole input next to its line
// and takes from the peers' copies what it needs. One synchronisation. The smallest inputs fit the
// line itself.
#pragma once

#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"
#include "lib/collective/tune/shared_methods.h"

namespace gxp {

class CopiedMethod {
 public:
  CopiedMethod(GroupSync& sync, PartMover& mover);

  // Whether all inputs are small enough.
  [[nodiscard]] bool fits(const Invocation& inv) const {
    return inv.shape.largest_input <= most_copied(inv.call.collective, sync_.world_size());
  }
  void run(const Invocation& inv);

  // The parts of run(), for calls whose lines carry other things: copy() before the line is
  // published, prefetch_next() after it, take() when the peers have copied.
  void copy(const Invocation& inv);
  void prefetch_next(const Invocation& inv);
  void take(const Invocation& inv);

 private:
  [[nodiscard]] std::byte* copy_of(const Invocation& inv, int rank) const;

  GroupSync& sync_;
  PartMover& mover_;
  RankBuffers copies_;
};

}  // namespace gxp
