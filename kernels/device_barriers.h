// Memory through which streams of several ranks' devices wait for each other
// (kernels/math/device_barrier.h), and its host view.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/math/device_barrier.h"

namespace gxp {

inline constexpr size_t kMaxBarrierRanks = 64;  // ranks

// In the memory of a rank's device, mapped by its peers; zeroed before the first barrier.
struct BarrierBoard {
  std::array<uint32_t, kMaxBarrierRanks> words;  // by the member that has arrived
};

// In the memory of a rank's device; zeroed as the board is.
struct BarrierState {
  uint32_t passed = 0;  // barriers that have ended
  uint32_t missed = 0;  // one has ended without the others: all later ones end at once
};

// In pinned memory of the rank's host, which reads and writes it by std::atomic_ref.
struct BarrierControl {
  uint32_t aborted = 0;   // by the host: waits end
  uint32_t passed = 0;    // as in BarrierState; not those that ended without the others
  uint32_t missed = 0;    // a BarrierEnd
  uint32_t awaited = 0;   // then: for which member
  uint64_t limit_ns = 0;  // of a wait; set by the host
};

// The members' boards as mapped on this device; `rank` is this rank's index among them.
struct DeviceBarrier {
  std::span<BarrierBoard* const> boards;
  size_t rank = 0;
  BarrierState* state = nullptr;
  BarrierControl* control = nullptr;
};

}  // namespace gxp
