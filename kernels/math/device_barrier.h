// The barrier of kernels on the devices of several ranks, observed by their hosts: the protocol
// alone, for the memory of devices (kernels/cuda/system_flags.cuh), for std::atomic, and for a
// model of all interleavings, whichever `Flags` is.
//
// Each rank has a board: a word for each rank, in memory that all of them map. For their n-th
// barrier each rank arrives: it stores n in its word on every other board, released; and then
// awaits: until each word on its own board, acquired, has reached n. So
//   - a rank's writes before a barrier are visible to every rank that has left it;
//   - no rank leaves before all have arrived. A rank that has left has stored n + 1 at most, since
//     it cannot leave that barrier alone; so words are compared by their difference, and wrap.
// A wait that ends without the others (Flags::pause()) must be this rank's last: the rank enters no
// later barrier, so no peer mistakes it for arrived.
#pragma once

#include <cstdint>

#include "kernels/math/host_device.h"

namespace gxp {

enum class BarrierEnd : uint32_t {
  kPassed,
  kLate,     // the wait has lasted too long
  kAborted,  // the host has given up
};

template <class Flags, class Word>
GXP_HOST_DEVICE void arrive(Flags& flags, Word* on_their_board, uint32_t barrier) {
  flags.release(on_their_board, barrier);
}

template <class Flags, class Word>
GXP_HOST_DEVICE BarrierEnd await(Flags& flags, Word* on_my_board, uint32_t barrier) {
  for (;;) {
    if (int32_t(flags.acquire(on_my_board) - barrier) >= 0) return BarrierEnd::kPassed;
    const BarrierEnd given_up = flags.pause();  // kPassed: wait on
    if (given_up != BarrierEnd::kPassed) return given_up;
  }
}

}  // namespace gxp
