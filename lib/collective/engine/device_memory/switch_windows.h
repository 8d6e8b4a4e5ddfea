// Memory of a group's devices that stands behind common addresses (DeviceMulticast in
// device/device_sharing.h), where the switch between the GPUs adds and stores.
//   Order    all ranks add and remove the same, between the same calls; no call is under way.
//   Threads  one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/device_memory/device_peers.h"
#include "lib/device/device_sharing.h"

namespace gxp {

class SwitchWindows {
 public:
  // What each rank says of itself: of all of them the first that is in the way, the same on all.
  using Agree = std::function<Support(const Support& mine)>;

  // Puts a whole allocation of this rank's device, and those of the others, behind addresses.
  // `members` as GroupSync has them; `rank` is this one's place among them. One whose driver
  // refuses is named on all, and none has it then. Throws kPeer: a rank is lost or late.
  Support add(DevicePeers& peers, std::span<const int> members, size_t rank, Memory memory,
              const Agree& agree, Deadline deadline);
  // Not one of these: nothing happens.
  void remove(const std::byte* data) noexcept;

  // The number, from 1 on, of the one in which this memory wholly lies, the same on all ranks; 0:
  // in none.
  [[nodiscard]] uint32_t find(ConstMemory memory) const;
  // Where the memory at `offset` of that allocation is for the switch.
  [[nodiscard]] std::byte* at(uint32_t window, uint64_t offset) const;

 private:
  struct Window {
    uint32_t number;
    Memory memory;
    std::unique_ptr<DeviceMulticast> multicast;
    std::byte* addresses;
  };
  std::vector<Window> windows_;
  uint32_t added_ = 0;  // successfully or not
};

}  // namespace gxp
