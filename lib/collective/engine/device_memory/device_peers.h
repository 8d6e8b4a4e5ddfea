// This rank's device in collectives, and the memory of its peers' devices that it maps.
//
// Since ranks allocate memory on their own, an allocation is offered to a peer with the first call
// that works on it: its descriptor is in the peer's channel before this rank's line names it
// (group_sync.h), and who reads the line takes it from there without waiting for anybody. Each call
// takes all offers, so a channel holds those of one call at most. Freed allocations are reported
// before the next offer; until then the peer's mapping keeps the memory.
//   Threads  one at a time; no call is under way at the end.
//   Errors   kPeer: a peer is gone, or names memory that it has not offered; kDevice; kIo.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/device_barriers.h"
#include "kernels/device_folds.h"
#include "lib/base/deadline.h"
#include "lib/collective/engine/folding_device.h"
#include "lib/device/device.h"
#include "lib/transport/arena/shared_arena.h"

namespace gxp {

class DevicePeers {
 public:
  // Bytes of each rank's memory that all peers map from the beginning; counted as kCommunication.
  static constexpr size_t kSharedBytes = size_t{8} << 20;
  // Of it, scratch memory; boards of barriers follow.
  static constexpr size_t kScratchBytes = kSharedBytes - (size_t{256} << 10);

  // For a rank that is alone.
  explicit DevicePeers(const FoldingDevice& device);
  // Ranks of the arena, each with its device (DeviceSharing::identity()).
  using Members = std::map<int, std::string>;
  // `rank` is this one, a member. The arena outlives it.
  DevicePeers(const FoldingDevice& device, SharedArena& arena, Members members, int rank);
  DevicePeers(const DevicePeers&) = delete;
  DevicePeers& operator=(const DevicePeers&) = delete;

  // All members call it at the same time. Whether this rank reads what each peer has written to its
  // scratch memory; if not, why not.
  Support handshake(Deadline deadline);

  [[nodiscard]] DeviceFolds& folds() { return device_.folds; }
  [[nodiscard]] DeviceSharing& sharing() const { return *device_.device.sharing(); }
  // Whether both members have the same device.
  [[nodiscard]] bool share_device(int a, int b) const { return members_.at(a) == members_.at(b); }
  // The collectives' own; urgent.
  [[nodiscard]] Stream& stream() { return *stream_; }
  // The location of this rank's memory, for its peers.
  [[nodiscard]] AllocationOffset place_of(const std::byte* data, size_t bytes) const;
  // Offers an allocation of this rank to these ranks for mapping, if they do not have it yet.
  void offer(uint64_t allocation, std::span<const int> ranks, Deadline deadline);
  // Takes what `rank` has offered, until that allocation is mapped.
  void learn(int rank, uint64_t allocation, Deadline deadline);
  // A peer's memory at the position in its line, in an allocation that is mapped.
  [[nodiscard]] std::byte* at(int rank, const AllocationOffset& place, size_t bytes) const;
  [[nodiscard]] std::byte* scratch(int rank) const { return scratch_of_[size_t(rank)]; }
  // The barriers of a group's ranks (group_barriers.h); `group` is GroupSync's.
  [[nodiscard]] BarrierBoard* board(int rank, int group) const;
  [[nodiscard]] BarrierState* barrier_state(int group) const;
  [[nodiscard]] BarrierControl* barrier_control(int group);
  // Zeroes this rank's board, state and control of that group.
  void clear_barriers(int group);
  // All barriers end now, and from now on, without the others. Any thread.
  void end_barriers() noexcept;
  // Whether that rank has ended. Any thread.
  [[nodiscard]] bool is_gone(int rank) const { return arena_->channels().is_closed(rank); }
  // A number that no other object of this process has.
  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  struct Offer;
  using Mapped = std::map<uint64_t, PeerMemory>;  // by the allocation's number

  Support prepare_scratch();
  void offer_scratch(bool exists, Deadline deadline);
  Support check_scratch(int peer, Deadline deadline);
  void send(int rank, const Offer& offer, int fd, Deadline deadline);
  void tell_freed(int rank, Deadline deadline);
  // The next offer of `rank`; maps what it offers, or forgets what it has freed.
  Offer take(int rank, Deadline deadline);

  FoldingDevice device_;
  std::unique_ptr<Stream> stream_;
  SharedArena* arena_ = nullptr;
  Members members_;
  int rank_ = 0;
  uint64_t number_;
  Buffer shared_;
  Buffer controls_;                          // pinned memory of the host, by group
  std::vector<std::byte*> scratch_of_;       // by rank
  std::vector<std::set<uint64_t>> offered_;  // by rank
  std::vector<Mapped> mapped_;               // by rank
};

}  // namespace gxp
