// Carries out the calls of a group of ranks: gxp's own algorithms over a transport
// (native_engine.h), or a library that has collectives of its own. A Communicator has one; it
// checks the calls, numbers and orders them, and deals with their failures.
//   Threads  one at a time, except abort() and counters().
//   Errors   kPeer: a rank is lost, late or made a different call. After any error only abort() and
//            the destructor are called.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/communicator_memory.h"
#include "lib/collective/engine/folding_device.h"
#include "lib/collective/engine/queued_call.h"
#include "lib/collective/tune/selection.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"
#include "lib/device/stream.h"
#include "lib/transport/transport.h"

namespace gxp {

// Whether there is memory, and it is host memory.
inline bool is_host_memory(const ConstMemory& memory) {
  return memory.bytes > 0 && memory.space == MemorySpace::kHost;
}

// One message of Communicator::send() or recv().
struct PeerMessage {
  bool sends = false;
  int peer = 0;  // in the group
  Memory data;   // not written if it is sent
};

// A library's own report that another rank, the network or the device has failed: the cause, as far
// as it is known here. (An engine that has only waited too long throws Error.)
class LibraryFailure : public Error {
 public:
  using Error::Error;
};

class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;            // "native"
  [[nodiscard]] virtual std::string_view transport_name() const = 0;  // "shm"
  [[nodiscard]] virtual int rank() const = 0;                         // in the group
  [[nodiscard]] virtual int world_size() const = 0;                   // of the group
  // The host of each rank of the group, numbered from 0; empty: all on one.
  [[nodiscard]] virtual std::span<const int> hosts() const = 0;
  // Whether calls accept memory in this space; and whether messages do.
  [[nodiscard]] virtual bool supports_memory(MemorySpace space) const {
    return space == MemorySpace::kHost;
  }
  [[nodiscard]] virtual bool supports_p2p_memory(MemorySpace space) const {
    return supports_memory(space);
  }
  // Lets calls, of groups that are split off as well, accept memory of this device from now on
  // until leave_device(), which comes before the device's end. All ranks of the group call it, as
  // call number `sequence`. The verdict is the same on all: whether calls of this group do.
  [[nodiscard]] virtual Support join_device(const FoldingDevice& device, uint32_t sequence,
                                            Deadline deadline);
  virtual void leave_device() noexcept {}

  // Memory as extents_of() says; `call.sequence` is set.
  virtual void execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) = 0;
  // Whether enqueue() can queue calls; the same on all ranks.
  [[nodiscard]] virtual bool queues_calls() const { return false; }
  // Queues a call on device memory, not a barrier, after all work of `stream`; later work of
  // `stream` runs after the call. `stream` is of the same device, and the caller a Work of it, or
  // nothing is queued. Returns when the call is queued; null: it is done. execute(), exchange() and
  // split() come when all queued calls are done. The memory stays untouched until then.
  [[nodiscard]] virtual std::unique_ptr<QueuedCall> enqueue(const Call& call, ConstMemory input,
                                                            Memory output, Stream& stream,
                                                            Deadline deadline);
  // All at the same time; in order between each two ranks.
  virtual void exchange(std::span<const PeerMessage> messages, Deadline deadline) = 0;
  // As Communicator::split(), which is call number `sequence`; null for color -1. The result may
  // use resources of this engine.
  [[nodiscard]] virtual std::unique_ptr<Engine> split(int color, int key, uint32_t sequence,
                                                      Deadline deadline) = 0;
  // Tells the engine that calls of this group work on this memory of the device, of as many bytes
  // on all ranks, until forget_memory(). All ranks call both. Not while calls are under way.
  virtual void keep_memory(Memory /*memory*/, Deadline /*deadline*/) {}
  virtual void forget_memory(Memory memory) noexcept { static_cast<void>(memory); }
  [[nodiscard]] virtual CommunicatorMemory allocate(size_t bytes) = 0;

  // How calls are chosen from now on. kConfig: there is no such algorithm.
  virtual void set_selection(const SelectionSettings& settings) = 0;
  [[nodiscard]] virtual AlgorithmPlan plan(const Call& call, MemoryOrigin origin) = 0;
  // All groups that were split from one, together.
  [[nodiscard]] virtual WireCounters counters() const = 0;
  // The part of bytes_sent that went to other hosts.
  [[nodiscard]] virtual uint64_t bytes_sent_between_hosts() const = 0;
  // Wakes everything that waits with kPeer and this reason. Any thread, any number of times.
  virtual void abort(std::string_view reason) noexcept = 0;
};

// Base of vendor-library engines: the library selects algorithms and exposes no counters.
class LibraryEngine : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view transport_name() const override { return name_; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return world_size_; }
  [[nodiscard]] std::span<const int> hosts() const override { return hosts_; }
  [[nodiscard]] CommunicatorMemory allocate(size_t bytes) override;
  void set_selection(const SelectionSettings& settings) override;
  [[nodiscard]] AlgorithmPlan plan(const Call& call, MemoryOrigin origin) override;
  [[nodiscard]] WireCounters counters() const override { return {}; }
  [[nodiscard]] uint64_t bytes_sent_between_hosts() const override { return 0; }

 protected:
  // "mpi", "MPI"; the device gives allocate()'s memory and outlives the engine.
  LibraryEngine(std::string_view name, std::string_view library, Device& device)
      : name_(name), library_(library), device_(device) {}

  int rank_ = 0;
  int world_size_ = 1;
  std::vector<int> hosts_;

 private:
  std::string_view name_;
  std::string_view library_;
  Device& device_;
};

// For engines that select algorithms themselves. kConfig: a setting names an algorithm.
void require_own_choice(std::string_view engine, const SelectionSettings& settings);

}  // namespace gxp
