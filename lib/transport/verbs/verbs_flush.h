// Makes a GPU see what NICs have written into its memory.
//
// A write's completion says that the NIC has sent the bytes on their way over PCIe, and the host
// learns of it on another path than the GPU does. A GPU that is notified at once may therefore read
// old bytes. A read by the same NIC does not overtake its writes: when it has returned a few bytes
// of that memory, all earlier writes are complete. The read goes through a connection of the NIC to
// itself.
//   Source   NVIDIA, GPUDirect RDMA, synchronization and memory ordering; NCCL 2.30.7, net_ib.
//   Cost     some 3 us a message, and a queue pair for each peer and NIC, once it is needed.
//   Errors   kDevice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/transport/verbs/verbs_channel.h"

namespace gxp {

class VerbsFlush {
 public:
  // Flushes what arrives over these routes from `peer`. The registrations outlive this.
  VerbsFlush(int peer, std::span<const VerbsRoute> routes, VerbsRegistrations& registrations);
  // Starts to flush the memory around `address`, which `memory` registers. Returns how many
  // completions of kind kFlush with this slot follow.
  size_t start(uint16_t slot, const std::byte* address, const VerbsRegistrations::Use& memory);
  // One of them has come.
  void on_done(const WorkId& id, const ibv_wc& completion);

 private:
  struct Loop {
    size_t device = 0;
    std::unique_ptr<VerbsLane> lane;  // from the device to itself
  };
  VerbsRegion landing_;  // what was read
  std::vector<Loop> loops_;
};

}  // namespace gxp
