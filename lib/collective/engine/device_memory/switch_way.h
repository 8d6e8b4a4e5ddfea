// By the switch between the GPUs (NVLink SHARP), which adds what it reads of all ranks' memories and
// stores to all of them: where a group's buffers lie behind common addresses (switch_windows.h) and
// bits need not be those of reduction_tree.h, since the switch has an order of its own.
//
// Of an all-reduce of K bytes among p ranks, each rank has the switch add its share of K/p, and
// store the sum to all. Of a broadcast the root has it store all. What goes over each GPU's link,
// out of it or into it, whichever is more:
//                    two-shot (device_executor.h)   by the switch
//   all-reduce       2 K (p - 1) / p                K (p + 1) / p: K for others' shares, K/p of sums
//   broadcast        2 K (p - 1) / p at the root    K
//   reduce-scatter   K (p - 1) / p                  K: each rank's own part goes there as well
//   all-gather       K (p - 1) / p                  K: likewise
// So it takes less from 4 ranks on, of the first two operations; the others stay as they are.
// Calls of less than kLeastBytes for each rank that works do as well: a warp's access, the unit in
// which a link moves bytes with few of its own, is then not full.
#pragma once

#include <cstddef>

#include "lib/collective/engine/device_memory/device_mover.h"
#include "lib/collective/engine/shared_memory/direct_way.h"

namespace gxp {

class SwitchWay {
 public:
  static constexpr int kLeastRanks = 4;
  static constexpr size_t kLeastBytes = 32 * DeviceFolds::kSwitchBytes;

  // `direct` does what is left over.
  SwitchWay(DeviceMover& mover, DirectWay& direct) : mover_(mover), direct_(direct) {}

  // Whether the switch can do it, and with fewer bytes on the links.
  [[nodiscard]] static bool suits(const Call& call, int ranks);
  // The common addresses of the ranks' buffers; `input` is an all-reduce's alone.
  struct Addresses {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
  };
  // This rank's part of it, which the caller orders, as of DirectWay::move().
  void move(const Invocation& inv, const RankBuffers& buffers, const Addresses& common);

 private:
  DeviceMover& mover_;
  DirectWay& direct_;
};

}  // namespace gxp
