// The messages that this rank receives over one link, and the places that it grants for the data
// of long ones.
//
//   stored    the place is the receive's own memory. It is granted early, before the peer has
//             announced the message, as long as kEarlyGrants allow it and it is certain which
//             message it will be: grants and messages of one tag pair up in order.
//   combined  tiles of this link's, one after the other; granted once the message is announced,
//             because a tile that waits for a message that is never sent would block the others.
//   parked    the parking place, once the message is announced.
//
// A grant's number comes back with the last write of each lane. What was written into GPU memory is
// flushed then (VerbsFlush), unless the GPU needs no flush.
//   Errors   kDevice; kPeer: data that nobody has granted, and what PeerMessages::begin() throws.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "lib/transport/peer_messages.h"
#include "lib/transport/verbs/verbs_channel.h"

namespace gxp {

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

class VerbsReceiver {
 public:
  // Both outlive this.
  VerbsReceiver(int peer, VerbsChannel& channel, VerbsRegistrations& registrations,
                const VerbsGpu& gpu)
      : peer_(peer), channel_(channel), registrations_(registrations), gpu_(gpu) {}

  // A receive whose message has not come.
  void post(PendingMessage& receive);
  // A slot has received a message or an announcement.
  void on_message(uint16_t slot) { inbox_.push_back(slot); }
  // A lane has written the last of its bytes for the grant of this number.
  void on_data(uint32_t number, PeerMessages& messages);
  // A read that flushes has come back.
  void on_flushed(const WorkId& id, const ibv_wc& completion, PeerMessages& messages);
  // Whether a device may write into what users receive into.
  [[nodiscard]] bool holds_memory() const;
  // No device does any more; nothing but the destructor may follow.
  void release_memory() noexcept;
  // Takes messages as long as any are awaited, and grants places; whether anything moved.
  bool progress(PeerMessages& messages);

 private:
  // A long message, or a receive that waits for one.
  struct Arrival {
    PendingMessage* message = nullptr;
    bool announced = false;
    uint32_t number = 0;         // of the announcement
    size_t granted = 0;          // bytes
    size_t landed = 0;           // bytes; of a combined message those that were combined
    std::deque<size_t> tiles{};  // grants in the order of their bytes
    VerbsRegistrations::Use memory{};
  };
  using Arriving = std::list<Arrival>::iterator;
  struct Grant {
    bool used = false;
    bool landed = false;
    uint32_t round = kFirstNumber >> 8;  // counts its uses; 24 bits
    size_t lanes_left = 0;
    size_t flushes_left = 0;
    size_t bytes = 0;
    std::byte* place = nullptr;
    Arriving arriving{};
  };

  static bool combines(const PendingMessage& message) { return message.combiner.apply != nullptr; }
  void take_first(PeerMessages& messages);
  void begin(const VerbsHeader& header, PeerMessages& messages);
  bool grant_announced();
  bool grant_early();
  bool grant_more(Arriving arriving);
  bool grant(Arriving arriving, std::byte* place, size_t bytes, const VerbsRegistrations::Use& at);
  std::byte* free_tile();
  void land(Grant& grant, PeerMessages& messages);
  void combine_landed(Arriving arriving);
  void end_if_whole(Arriving arriving, PeerMessages& messages);

  int peer_;
  VerbsChannel& channel_;
  VerbsRegistrations& registrations_;
  VerbsGpu gpu_;
  std::unique_ptr<VerbsFlush> flush_;  // once there is GPU memory to flush
  std::deque<uint16_t> inbox_;         // slots in order
  std::list<Arrival> posted_;          // receives of long messages, in order
  std::list<Arrival> announced_;       // messages that are being sent, in order
  std::array<Grant, kGrants> grants_{};
  std::unique_ptr<VerbsRegion> tiles_;  // once there is a message to combine
};

}  // namespace gxp
