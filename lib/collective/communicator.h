// Collective operations among the ranks of a group: what trainers and tools call.
//
//   Order      every rank of the group calls the same operations with the same counts in the same
//              order. A rank that calls something else is named, with both calls, before data move
//              or at the deadline at the latest. Operations of groups that share ranks (split())
//              must be started in one order on all of these ranks.
//   Memory     each operation has an input and an output: memory of whole elements, whose
//              parts of the logical buffer algorithm.h and extents_of() define. They are either
//              apart, or in place: the same part of memory holds the same elements. Memory from
//              allocate() is read and written by the peers of the same host directly.
//   Chunks     the logical buffer is cut into world_size chunks of whole elements: the first
//              count % world_size are one element longer. Any count, also 0 and above 2^31; an
//              all-to-all takes multiples of world_size only.
//   Bits       the result has the same bits on every rank and in every run, unless engine nccl
//              adds. Layout-invariant algorithms (algorithm.h) give the same bits whatever the
//              buckets, the segments, the transport and the algorithm. Half types are folded in
//              f32, rounded once a fold; kAvg is the sum times 1 / world_size.
//   Threads    one thread at a time, except abort() and the counters; started calls run in order
//              on a thread of its own, and blocking calls queue behind it.
//   Streams    where queues_calls(), enqueue() puts a call on device memory into the order of a
//              stream instead of waiting for it.
//   Errors     kPeer: a rank is lost, late or made a different call; the message names it and the
//              operation; with a store all ranks throw the same text, "rank 2: ..." (diagnosis.h),
//              within 1.5 s of the deadline, or at once if a rank died. kUsage: an operation that
//              the element type does not have, or an all-to-all of unequal chunks. kUnavailable:
//              device memory. After kPeer only abort() and the destructor may be called; what was
//              started behind it fails with the same cause.
//   Cost       one rank: at most a copy. Otherwise the formulas of algorithm.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/reduce_op.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/communicator_memory.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/collective/joined_device.h"
#include "lib/collective/tune/selection.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"
#include "lib/device/stream.h"
#include "lib/net/store/store.h"
#include "lib/topo/plan/rank_plan.h"
#include "lib/transport/transport.h"

namespace gxp {

// Functions by which a failed call finds the culprit (diagnosis.h); all outlive the communicator.
struct FailureReporting {
  FlightRecorder* recorder = nullptr;  // what the engine writes; null: one of its own
  Store* store = nullptr;  // with the recorder; null: errors report this rank's view only
};

struct CommunicatorOptions {
  SelectionSettings selection{};             // the same on all ranks
  std::chrono::milliseconds timeout{60000};  // of one operation
  Profile profile = builtin_profile();       // of the cost model; the same on all ranks
  RankPlan plan{};  // the same on all ranks; empty: rings in rank order, groups are hosts
  FailureReporting reporting{};
};

class StartedCall;  // call_queue.h

// An operation that was started. wait() returns when the operation is done, or throws its error,
// once; a second wait(), and one on an empty handle, returns at once. The memory must live,
// untouched, until the first wait() returns. A handle may be waited for in any order and dropped.
class Pending {
 public:
  Pending() = default;
  explicit Pending(std::shared_ptr<StartedCall> call) : call_(std::move(call)) {}
  void wait();

 private:
  std::shared_ptr<StartedCall> call_;  // owners: this handle and the communicator's queue
};

class Communicator {
 public:
  // Over the native engine. Throws kConfig if there is no such algorithm.
  // `device` gives the scratch memory and counts it as kCommunication; it outlives the
  // communicator.
  Communicator(std::unique_ptr<Transport> transport, Device& device,
               const CommunicatorOptions& options);
  // `timeout`: of one operation.
  Communicator(std::unique_ptr<Engine> engine, std::chrono::milliseconds timeout,
               const FailureReporting& reporting = {});
  Communicator(Communicator&&) noexcept;
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int world_size() const;
  [[nodiscard]] std::string_view engine_name() const;
  [[nodiscard]] std::string_view transport_name() const;

  // Lets calls, and those of communicators that are split off, accept memory of this device where
  // the devices of the ranks of a host reach each other (device/device_sharing.h). All ranks call
  // it. Costs 8 MiB of the device and some milliseconds.
  [[nodiscard]] JoinedDevice join_device(const FoldingDevice& device);
  // [collective] Calls of this group will work on this whole allocation of the device, of as many
  // bytes on all ranks: engines that gain by it register it. Costs some milliseconds.
  [[nodiscard]] KeptMemory keep(Memory memory);
  // Whether calls accept memory in this space. All buffers of a call, on all ranks, are in one;
  // those without bytes say which, too.
  [[nodiscard]] bool supports_memory(MemorySpace space) const;
  [[nodiscard]] bool supports_p2p_memory(MemorySpace space) const;  // the same of send() and recv()
  // The host of each rank of the group, numbered from 0; empty: all on one.
  [[nodiscard]] std::span<const int> hosts() const;
  [[nodiscard]] bool share_host(int rank, int other) const;
  // How calls are chosen from now on; all ranks call it with the same. Throws kConfig if there is
  // no such algorithm.
  void set_selection(const SelectionSettings& settings);

  // Any collective, blocking or started; `input` and `output` have the sizes of extents_of().
  void run(const Call& call, ConstMemory input, Memory output);
  [[nodiscard]] Pending start(const Call& call, ConstMemory input, Memory output);

  // Whether enqueue() may be called; the same on all ranks.
  [[nodiscard]] bool queues_calls() const;
  // Queues a call (not a barrier) on memory of the joined device, which has ended when the stream
  // comes to it:
  //   Order      after all that `stream` was given so far, other streams' events that it waits for
  //              included; what the stream is given from now on, an event that it records among it,
  //              comes after the call. Queued calls run in their order, of all groups; the other
  //              calls here wait until they are done.
  //   Caller     a Work of the stream, or nothing is queued on it (as Stream::copy()).
  //   Ownership  the memory lives, untouched by others, until the stream has passed the call.
  //   Waits      none for the GPU. For other ranks only where the engine connects to them: in the
  //              first such calls, up to the timeout.
  //   Errors     thrown here: what can be seen at once. A call that fails later - its own timeout,
  //              which starts when the GPU comes to it; a rank that is lost; the engine's own -
  //              ends all that is queued, and check() and all later calls throw it. What the stream
  //              holds behind it still runs, on unspecified values: so who uses results waits for
  //              the stream and then calls check(), or lets the stream do both
  //              (Stream::set_watch()).
  //   Cost       that of the library to queue it, some 10 us.
  void enqueue(const Call& call, ConstMemory input, Memory output, Stream& stream);
  // Throws if a call has failed, or the job as the store knows it. Any thread; 50 ns.
  void check() const;

  // The same, in place: `data` is the whole logical buffer, and says its count.
  void run_in_place(const Call& call, Memory data);
  [[nodiscard]] Pending start_in_place(const Call& call, Memory data);
  void all_reduce(Memory data, DType dtype, ReduceOp op);
  // Afterwards chunk `rank()` is reduced; the other chunks hold unspecified values.
  void reduce_scatter(Memory data, DType dtype, ReduceOp op);
  // Chunk `rank()` is this rank's contribution; afterwards all chunks are filled.
  void all_gather(Memory data, DType dtype);
  void broadcast(Memory data, int root);
  // Returns after every rank has entered.
  void barrier();
  [[nodiscard]] Pending start_all_reduce(Memory data, DType dtype, ReduceOp op);
  [[nodiscard]] Pending start_reduce_scatter(Memory data, DType dtype, ReduceOp op);
  [[nodiscard]] Pending start_all_gather(Memory data, DType dtype);
  [[nodiscard]] Pending start_broadcast(Memory data, int root);

  // Messages between two ranks, in order, sizes equal on both sides. A rank may not send to itself.
  // A blocking send may last until its receive is posted; so an exchange is sendrecv() or a group.
  void send(int to, ConstMemory data);
  void recv(int from, Memory data);
  void sendrecv(int to, ConstMemory leaving, int from, Memory arriving);

  // Between begin_group() and end_group() sends and receives are only noted, and nothing else is
  // called; end_group() does all of them at the same time, so their order does not matter.
  void begin_group();
  void end_group();

  // The ranks that gave the same color >= 0 become a group of their own, ordered by (key, rank);
  // null for color -1. All ranks call it. The result shares the engine and the thread of this
  // communicator, which must outlive it.
  [[nodiscard]] std::unique_ptr<Communicator> split(int color, int key);

  // Zeroed memory, for this rank alone to ask for; the device's where no peers share memory with
  // it. Throws kIo or kDevice.
  [[nodiscard]] CommunicatorMemory allocate(size_t bytes);

  // What such a call runs here, and why; `origin` changes the method of shared memory and the
  // predicted time only.
  [[nodiscard]] AlgorithmPlan plan(const Call& call,
                                   MemoryOrigin origin = MemoryOrigin::kOrdinary) const;
  // The transport's, all groups together; bytes_sent counts shared memory by the algorithm's
  // formula.
  [[nodiscard]] WireCounters counters() const;
  // The part of bytes_sent that went to other hosts.
  [[nodiscard]] uint64_t bytes_sent_between_hosts() const;
  // Wakes everything that waits with kPeer and this reason. Any thread, any number of times.
  void abort(std::string_view reason) noexcept;

 private:
  class Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  [[nodiscard]] PlacedCall whole(const Call& call, Memory data) const;  // in place
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
