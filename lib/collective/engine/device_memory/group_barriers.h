// Barriers of a group's devices in the order of their streams (kernels/device_barriers.h), so that
// a whole call can be queued and no host waits within it.
//   Threads  one queues; one at a time looks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/device_memory/device_peers.h"
#include "lib/collective/engine/shared_memory/group_sync.h"

namespace gxp {

class GroupBarriers {
 public:
  // Clears this rank's board, before its peers can see its line of the first call with barriers.
  // All members make theirs for the same call. `peers` outlives it.
  GroupBarriers(DevicePeers& peers, const GroupSync& sync);

  // Queues the next on `stream`; returns its number. A wait for the others ends some time after the
  // initial deadline, if the host does not end it earlier.
  uint32_t queue(Stream& stream, Deadline deadline);
  // Whether this rank has left the barrier, with all others.
  [[nodiscard]] bool has_passed(uint32_t barrier) const;
  // While one has not been passed: throws kPeer, with the group's rank that has not come, if one
  // was missed or a member has ended.
  void check();

 private:
  DevicePeers& peers_;
  std::vector<int> members_;
  std::vector<BarrierBoard*> boards_;
  DeviceBarrier barrier_;
  uint32_t queued_ = 0;
  std::optional<Deadline> grace_;  // since one was first seen to have ended
};

}  // namespace gxp
