// Collective calls on memory of a device, among groups of ranks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/collective/algorithm/algorithm.h"
#include "lib/collective/joined_device.h"
#include "lib/device/device.h"
#include "lib/shard/rank_groups.h"
#include "lib/tensor/tensor.h"

namespace gxp {

class Communicator;

// Where the communicator's engine queues calls (Communicator::enqueue()), a call takes its place in
// the stream's order and the host waits for nothing; else where the engine reaches the device's
// memory (Communicator::join_device()), it works there; else a call goes through pinned memory of
// the host, which is as large as the largest call so far.
//   Order    after what the stream was given: each call is a Work of the stream, or the caller's
//            while nothing is queued. The stream's next work finds the result on the device.
//   Errors   the communicator's. The errors of queued calls come later: at the latest in the next
//            wait for the stream, which Communicator::check() watches (LaneWatch).
//   Cost     through pinned memory: two copies over the link to the device, before and after the
//            call. They are not cut into pieces: the calls of a step are buckets and FSDP units,
//            several of which follow each other, and a piece of an all-gather is not one part of
//            memory.
class DeviceCalls {
 public:
  // [collective] All arguments outlive it; `world` is the communicator of all ranks.
  DeviceCalls(Device& device, Stream& stream, Communicator& world, const RankGroups& groups);
  ~DeviceCalls();

  [[nodiscard]] Communicator& world() const { return world_; }
  // Whether calls of some group work on the device's own memory, among several ranks.
  [[nodiscard]] bool work_on_device() const;
  // [collective] Registers allocations in which the calls' operands will lie, until the returned
  // object is destroyed, which happens before the memory is freed.
  [[nodiscard]] std::vector<KeptMemory> keep(const std::vector<Memory>& allocations);
  // In place: `data` is the whole logical buffer. Reductions are sums. If `apart` is not empty, it
  // holds this rank's input instead.
  void run(RankGroup group, Collective collective, const Tensor& data,
           const ConstTensor& apart = {});
  // A function that calls run().
  std::function<void()> bind(RankGroup group, Collective collective, const Tensor& data,
                             const ConstTensor& apart = {}) {
    return [=, this] { run(group, collective, data, apart); };
  }

  [[nodiscard]] Communicator& members(RankGroup group);

 private:
  Device& device_;
  Stream& stream_;
  Communicator& world_;
  std::unique_ptr<Communicator> shard_group_;    // null: all ranks
  std::unique_ptr<Communicator> replica_group_;  // null: this rank alone
  Buffer pinned_;
};

}  // namespace gxp
