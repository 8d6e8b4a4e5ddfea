// Runs an algorithm's steps: bytes over a Transport, folds on the calling thread.
//
// A step's range travels in segments, each one message, so that folding one segment overlaps the
// transfer of the next. What is to be folded arrives in a few scratch segments, allocated at the
// first fold and counted by the device as MemoryKind::kCommunication; nothing else is allocated
// once the largest call has been seen.
//   Threads  one at a time.
//   Errors   those of the transport; then the executor and the transport are unusable.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/reduce_op.h"
#include "lib/base/deadline.h"
#include "lib/collective/algorithm.h"
#include "lib/collective/call.h"
#include "lib/collective/primitives.h"
#include "lib/device/device.h"
#include "lib/transport/transport.h"

namespace gxp {

class Executor final : public Primitives {
 public:
  // Borrows both. Ranks that work together use the same `segment_bytes`, > 0; it is rounded
  // up to 64, so that a segment holds whole elements.
  Executor(Transport& transport, Device& device, size_t segment_bytes);
  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int world_size() const override { return transport_.world_size(); }

  // `data` is host memory and holds call.count elements; it may be changed as soon as this returns.
  void execute(const Algorithm& algorithm, const Call& call, Memory data, Deadline deadline);

 private:
  // Receives in flight at once: one is folded, the others keep the transport busy.
  static constexpr size_t kScratchSegments = 4;

  struct Sending {
    Range range;
    Ticket ticket;
  };

  void run(const CollectiveStep& step) override;
  void start_send(int to, Range leaving);
  void finish_sends_of(Range range);
  void finish_all_sends();
  void receive(int from, Range into);
  void receive_and_fold(int from, Range into);
  void exchange_tokens(int to, int from);
  void prepare_scratch();
  [[nodiscard]] Memory memory_of_range(Range range) const;
  [[nodiscard]] size_t segment_count(Range range) const;
  [[nodiscard]] Range segment(Range range, size_t index) const;

  Transport& transport_;
  Device& device_;
  size_t segment_bytes_;
  Buffer scratch_;
  std::vector<Sending> sending_;
  std::vector<Ticket> arriving_;
  // Of the call that runs:
  Call call_;
  Memory data_;
  Tag tag_ = 0;
  Deadline deadline_ = Deadline::after({});
};

}  // namespace gxp
