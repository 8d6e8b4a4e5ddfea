// From buffer to buffer (shared_executor.h), in communicator memory or by cross-memory attach: each
// rank takes what it needs from the peers' inputs; of an all-reduce, rank r folds part r of all
// inputs and stores the sum into all outputs; of a broadcast, it copies part r to all; of a gather,
// it gives its own part. Chunks of an all-to-all in place are swapped, half of each pair by either
// rank. A second synchronisation ends the call.
#pragma once

#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"

namespace gxp {

class DirectMethod {
 public:
  DirectMethod(GroupSync& sync, PartMover& mover) : sync_(sync), mover_(mover) {}

  // Chunks of an all-to-all can be swapped if all ranks are in place, and taken if none is.
  [[nodiscard]] static bool can_run(const Invocation& inv, const RankBuffers& buffers);
  // In one phase.
  void run(const Invocation& inv, const RankBuffers& buffers);
  // This rank's part of it, which the caller orders: all ranks have entered before, and have moved
  // theirs before any touches its buffers again. Of buffers that are mapped.
  void move(const Invocation& inv, const RankBuffers& buffers);
  // For an all-reduce or a broadcast: that much of it, by one rank (the root of a broadcast).
  void move_range(const Invocation& inv, const RankBuffers& buffers, Range range);

 private:
  void pull_and_fold(const Invocation& inv, const RankBuffers& buffers);
  void spread_sum(const Invocation& inv, const RankBuffers& buffers, Range piece,
                  const std::byte* sum);
  void fold_range(const Invocation& inv, const RankBuffers& buffers, Range range);
  void give_part(const Invocation& inv, const RankBuffers& buffers);
  void spread_range(const Invocation& inv, const RankBuffers& buffers, Range range);
  void swap_chunks(const Invocation& inv, const RankBuffers& buffers);

  GroupSync& sync_;
  PartMover& mover_;
};

}  // namespace gxp
