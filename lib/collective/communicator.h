// Collective operations among the ranks of a group: what trainers and tests call.
//
//   Order      every rank of the group calls the same operations with the same sizes in the same
//              order. A rank that calls something else is found out at the timeout at the latest.
//   In place   `data` is both input and output, host memory of whole elements; each rank's has the
//              same size.
//   Chunks     `data` is cut into world_size chunks of whole elements (Chunks in algorithm.h): the
//              first count % world_size chunks are one element longer. Any count, also 0.
//   Bits       the result has the same bits on every rank and in every run; algorithms whose
//              reduction order does not depend on where an element lies in the buffer are
//              "layout-invariant" (algorithm.h). Half types are summed in f32, rounded once a fold;
//              kAvg is the sum times 1 / world_size.
//   Threads    one thread at a time, except abort() and counters(); the start_* operations run in
//              order on the communicator's own thread, and blocking calls queue behind them.
//   Errors     kPeer: a rank is lost, late or called something else; the message names it and the
//              operation. kUnavailable: device memory. Then only abort() and the destructor may be
//              called; whatever was started behind it fails with the same cause.
//   Cost       one rank: nothing moves. Otherwise the formulas of algorithm.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/reduce_op.h"
#include "lib/device/device.h"
#include "lib/device/memory.h"
#include "lib/transport/transport.h"

namespace gxp {

struct CommunicatorOptions {
  std::string algorithm = "auto";  // auto | ring | halving-doubling
  bool layout_invariant = true;    // auto picks only algorithms whose order ignores the layout
  std::chrono::milliseconds timeout{60000};  // of one collective
  size_t segment_bytes = 256 << 10;          // unit of pipelining inside a chunk; same on all ranks
};

// An operation that was started. wait() returns when it is done or throws what it threw; once,
// after that and on an empty handle it returns at once. `data` must live, untouched, until then. A
// handle may be waited for in any order and dropped.
class Pending {
 public:
  class State;
  Pending() = default;
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void wait();

 private:
  std::shared_ptr<State> state_;  // owners: this handle and the communicator's queue
};

class Communicator {
 public:
  // Owns the transport. Throws kConfig if there is no such algorithm.
  // `device` gives the scratch memory and counts it as kCommunication; it outlives the
  // communicator.
  Communicator(std::unique_ptr<Transport> transport, Device& device,
               const CommunicatorOptions& options);
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int world_size() const;
  [[nodiscard]] std::string_view transport_name() const;

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

  // "halving-doubling: layout-invariant"; what an all-reduce of that size would run here, and why.
  [[nodiscard]] std::string explain_choice(size_t bytes) const;
  [[nodiscard]] WireCounters counters() const;
  // Wakes everything that waits with kPeer and this reason. Any thread, any number of times.
  void abort(std::string_view reason) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
