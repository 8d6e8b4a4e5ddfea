// Runs a call on the memory of the ranks' devices, which reach each other: the algorithm `direct`,
// as shared_executor.h does it on the host's. The bits are those of reduction_tree.h (fold_all).
//
// In execute(), the host orders everything: ranks synchronise by lines and phases (group_sync.h),
// and each finishes its stream before it publishes one. No kernel on a device therefore waits for a
// peer, and a lost peer is detected as in every other call. Each phase costs a rank the launch and
// the end of its work, some 20 us on a GPU. If ranks share a device, their processes take turns on
// it, which costs more: with 2 and 4 ranks on an H100, some 140 us for each that has work. So of
// all-reduces and reductions, the first of a device's ranks does the parts of all of them, if their
// memory is mapped; and with as many of the device's multiprocessors as its memory keeps busy
// (DeviceFolds::kWideBlocks).
//
// In enqueue(), the hosts only exchange lines; the devices synchronise (group_barriers.h) when
// their streams reach the call, and again after its work.
//
// All ranks decide alike, by the buffers' locations in the lines:
//   direct    all lie in memory that peers map (Device::allocate_shareable()): two-shot. Rank r
//             folds part r of all inputs into all outputs in one kernel; gathers are copies. One
//             phase at any size, so one-shot, where each rank folds everything, gains nothing.
//   one-shot  else, of inputs up to kOneShotBytes: each rank copies its own to its scratch memory,
//             and takes or folds all that it needs from the others'. Two phases.
//   tiles     else (tiled_method.h): two-shot through scratch memory. One phase a tile.
// For p ranks and K bytes of an all-reduce, each device reads and writes 2K(p - 1)/p of its peers'
// memory; one-shot it reads K(p - 1).
//   Errors    kPeer: a peer is lost, late, or has made another call; both calls are named. kDevice.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/device_memory/device_peers.h"
#include "lib/collective/engine/device_memory/group_barriers.h"
#include "lib/collective/engine/queued_call.h"
#include "lib/collective/engine/shared_memory/direct_method.h"
#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"
#include "lib/collective/engine/shared_memory/tiled_method.h"

namespace gxp {

// Moves and folds parts of buffers in devices' memory (part_mover.h): copies by the device's copy
// engines, folds by its kernels, both queued on a stream, for which finish() waits.
class DeviceMover final : public PartMover {
 public:
  explicit DeviceMover(GroupSync& sync) : PartMover(sync) {}
  // For the calls from now on, which are queued on `stream`; folds take so many blocks at most
  // (FoldOptions).
  void use(DevicePeers& peers, Stream& stream, unsigned blocks) {
    peers_ = &peers;
    stream_ = &stream;
    blocks_ = blocks;
  }

  void fetch(bool mapped, int rank, const std::byte* there, std::byte* here, size_t bytes) override;
  void store(bool mapped, int rank, std::byte* there, const std::byte* here, size_t bytes) override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void copy_input(const Invocation& inv, std::byte* to, Range range) override;
  void run_fold(const Call& call, size_t bytes, bool by_copies) override;
  [[nodiscard]] std::byte* staging(int rank) const override {
    return peers_->scratch(sync_.member(rank));
  }
  void expect_write(std::byte* /*target*/, size_t /*bytes*/) override {}
  [[nodiscard]] size_t swapped_bytes(bool /*mapped*/) const override {
    return DevicePeers::kScratchBytes;
  }
  void finish(const Invocation& inv) override { stream_->finish(inv.deadline); }

 private:
  DevicePeers* peers_ = nullptr;
  Stream* stream_ = nullptr;
  unsigned blocks_ = 0;
};

class DeviceExecutor {
 public:
  static constexpr size_t kOneShotBytes = size_t{256} << 10;

  // At most DeviceFolds::kMostSources ranks.
  explicit DeviceExecutor(GroupSync& sync);
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  // Memory of the device as extents_of() says, which its last writers have finished; when it
  // returns the output is complete. The ranks of the group have passed (DevicePeers::handshake()).
  void execute(DevicePeers& peers, const Call& call, ConstMemory input, Memory output,
               Deadline deadline);
  // Engine::enqueue(). Each rank has a device of its own: a barrier occupies it. Waits for the
  // ranks' hosts to come to the call, but for no device; tiles are as in execute().
  std::unique_ptr<QueuedCall> enqueue(DevicePeers& peers, const Call& call, ConstMemory input,
                                      Memory output, Stream& stream, Deadline deadline);

 private:
  // The content of a line: the locations of the buffers. No allocation: peers cannot map it, or
  // must not, since it is to be scaled first.
  struct Placement {
    AllocationOffset input;
    AllocationOffset output;
    [[nodiscard]] bool everywhere() const {
      return input.allocation != 0 && output.allocation != 0;
    }
  };
  const SharedCall& find(const Call& call);
  Invocation begin(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  [[nodiscard]] Placement place(const DevicePeers& peers, const Invocation& inv) const;
  [[nodiscard]] const Placement& placement_of(const Invocation& inv, int rank) const;
  // Enters the call, and returns when all have: with all ranks' buffers, if peers map them.
  std::optional<RankBuffers> exchange(DevicePeers& peers, const Invocation& inv);
  // Maps what a peer's line names.
  void learn(DevicePeers& peers, const Invocation& inv, int rank, const Placement& theirs) const;
  [[nodiscard]] RankBuffers resolve(const DevicePeers& peers, const Invocation& inv) const;
  // The ranks that have this one's device, itself among them.
  [[nodiscard]] std::vector<int> ranks_of_device(const DevicePeers& peers) const;
  // The parts of all ranks of a device, folded into all outputs by the caller alone.
  void fold_for(const std::vector<int>& ranks, const Invocation& inv, const RankBuffers& buffers);
  void run_one_shot(const Invocation& inv);
  // Queues a call's kernels and copies, between and after its barriers; null: the host has waited.
  std::unique_ptr<QueuedCall> queue(const Invocation& inv,
                                    const std::optional<RankBuffers>& buffers, Stream& stream);
  // This rank's input to its scratch memory; its output from all ranks'.
  void give_copy(const Invocation& inv);
  void take_copies(const Invocation& inv);

  GroupSync& sync_;
  std::vector<int> members_;
  DeviceMover mover_{sync_};
  DirectMethod direct_{sync_, mover_};
  TiledMethod tiled_{sync_, mover_};
  std::array<std::optional<SharedCall>, 8> known_;
  size_t next_known_ = 0;                    // to be replaced
  std::shared_ptr<GroupBarriers> barriers_;  // with the peers of that number
  uint64_t met_peers_ = 0;
};

// The same for a rank that is alone.
void execute_alone(DevicePeers& peers, const Call& call, ConstMemory input, Memory output,
                   Deadline deadline);

}  // namespace gxp
