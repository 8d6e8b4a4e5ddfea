// How ranks exchange the locations of a call's buffers: on their lines, as offsets in
// communicator memory, else as addresses for cross-memory attach.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"

namespace gxp {

// Offsets of a rank's buffers in the heap of its segment; 0: not in communicator memory.
struct BufferPlacement {
  uint64_t input = 0;
  uint64_t output = 0;
  [[nodiscard]] bool everywhere() const { return input != 0 && output != 0; }
};

// When a rank entered and left a call that was timed.
struct CallTimes {
  int64_t entered_ns = 0;
  int64_t left_ns = 0;
};

// The locations of the ranks' buffers in the last of several equal calls.
struct KnownPlacements {
  std::vector<BufferPlacement> by_rank;
  RankBuffers buffers{};  // all of them; empty: not resolved
};

class BufferExchange {
 public:
  explicit BufferExchange(GroupSync& sync) : sync_(sync) {}

  [[nodiscard]] BufferPlacement place(const Invocation& inv) const;
  // Enters the call. `last_timed`: times of the last timed call, if peers have not seen them yet.
  void publish(const Invocation& inv, const BufferPlacement& mine,
               const std::optional<CallTimes>& last_timed);
  // When all ranks have entered, returns how many of them have all of their buffers in communicator
  // memory.
  size_t gather(const Invocation& inv, const BufferPlacement& mine, KnownPlacements& known);

  // After gather(). The buffers in this process, if all ranks' are in communicator memory.
  const RankBuffers& resolve(const Invocation& inv, KnownPlacements& known) const;
  // The addresses of the buffers for cross-memory attach; null: the OS does not let all ranks reach
  // each other's memory. Precondition: no rank has all of its buffers in communicator memory.
  const RankBuffers* find_by_cma(const Invocation& inv);
  // Whether rank 0's call is in place. Same precondition.
  [[nodiscard]] bool is_in_place(const Invocation& inv) const;
  // The last entry and the last exit of the call whose times are in all lines.
  [[nodiscard]] CallTimes times(const Invocation& inv, CallTimes mine) const;

 private:
  // On a line after the placement, unless that is everywhere() and no times are sent.
  struct Addresses {
    uint64_t input = 0;
    uint64_t output = 0;
    uint64_t reaches_all = 0;  // whether the rank can copy from and to any peer's memory
    CallTimes times;
  };
  [[nodiscard]] const BufferPlacement& placement_on(const Invocation& inv, int rank) const {
    return *reinterpret_cast<const BufferPlacement*>(sync_.line(rank, inv.index).payload);
  }
  [[nodiscard]] const Addresses& addresses_on(const Invocation& inv, int rank) const {
    return *reinterpret_cast<const Addresses*>(sync_.line(rank, inv.index).payload +
                                               sizeof(BufferPlacement));
  }

  GroupSync& sync_;
  RankBuffers by_cma_{.mapped = false};
};

}  // namespace gxp
