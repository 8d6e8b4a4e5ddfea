// Collective calls on memory of a device, among groups of ranks.
#pragma once

#include <memory>

#include "lib/collective/communicator.h"
#include "lib/device/device.h"
#include "lib/shard/rank_groups.h"

namespace gxp {

// The communicator's functions of the same names, for memory of a device. Where the communicator's
// engine reaches that memory, it works there; else a call goes through pinned memory of the host,
// which is as large as the largest call so far.
//   Order    after what the stream was given: each call is a Work of the stream, or the caller's
//            while nothing is queued. When it returns, the device holds the result.
//   Cost     two copies over the link to the device, before and after the call. They are not cut
//            into pieces: the calls of a step are buckets and wraps, several of which follow each
//            other, and a piece of an all-gather is not one part of memory.
class DeviceCalls {
 public:
  // [collective] All arguments outlive it; `world` is the communicator of all ranks.
  DeviceCalls(Device& device, Stream& stream, Communicator& world, const RankGroups& groups);

  [[nodiscard]] Communicator& world() const { return world_; }
  // In place, as the communicator's.
  void sum(RankGroup group, Memory data, DType dtype);
  void reduce_scatter(RankGroup group, Memory data, DType dtype);
  void all_gather(RankGroup group, Memory data, DType dtype);
  // `whole` from the members' shards, which lie apart from it.
  void all_gather(RankGroup group, ConstMemory shard, Memory whole, DType dtype);

 private:
  Communicator& members(RankGroup group);
  void run_in_place(RankGroup group, const Call& call, Memory data);
  void run(Communicator& communicator, const Call& call, ConstMemory input, Memory output);

  Device& device_;
  Stream& stream_;
  Communicator& world_;
  std::unique_ptr<Communicator> shard_group_;    // null: all ranks
  std::unique_ptr<Communicator> replica_group_;  // null: this rank alone
  Buffer pinned_;
};

}  // namespace gxp
