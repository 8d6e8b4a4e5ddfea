// Runs an algorithm's steps: bytes over a Transport, folds on the calling thread.
//
// A step's range travels in segments, each one message, so that folding one segment overlaps the
// transfer of the next; what is to be folded is folded where the transport has received it. Memory
// is allocated only for scratch and where the output does not hold the whole logical buffer; it is
// counted by the device as MemoryKind::kCommunication and kept for later calls.
//   Threads  one at a time.
//   Errors   those of the transport; kPeer if a peer has made a different call. Then the executor
//            and the transport are unusable.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/reduce_op.h"
#include "lib/base/deadline.h"
#include "lib/collective/algorithm/algorithm.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/algorithm/primitives.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/device/device.h"
#include "lib/transport/transport.h"

namespace gxp {

class Executor final : public Primitives {
 public:
  // Borrows all three. `members[i]` is the transport's rank of the group's rank i; `rank` is this
  // one's number in the group. Each step that waits is reported to the recorder, not the call.
  Executor(Transport& transport, Device& device, FlightRecorder& recorder, std::vector<int> members,
           int rank);
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return int(members_.size()); }

  struct Work {
    const Algorithm* algorithm = nullptr;
    Call call;
    Tag tag = 0;
    CallShape shape;
    // The largest message, the same on all ranks; rounded up to 64, so to whole elements. 0: a
    // range is one message.
    size_t segment_bytes = 0;
    ConstMemory input;  // host memory as extents_of() says
    Memory output;
    Deadline deadline = Deadline::after({});
  };
  void execute(const Work& work);

 private:
  struct Sending {
    int to = 0;
    Range range;
    Ticket ticket;
  };

  void run(const CollectiveStep& step) override;
  void place(const Work& work);
  void give_result(const Work& work);
  void run_locally(const CollectiveStep& step);
  void start_send(int to, Range leaving);
  void finish_sends_of(Range range);
  void finish_all_sends();
  void receive(int from, Range into, bool fold);
  void exchange_tokens(int to, int from);
  void wait(Ticket ticket, int rank);
  void check_unexpected(int peer, Tag tag) const;
  [[nodiscard]] int peer(int rank) const { return members_[size_t(rank)]; }
  [[nodiscard]] Memory memory_of_range(Range range) const;
  [[nodiscard]] size_t segment_count(Range range) const;
  [[nodiscard]] Range segment(Range range, size_t index) const;

  Transport& transport_;
  Device& device_;
  FlightRecorder& recorder_;
  std::vector<int> members_;
  int rank_;
  Buffer work_;     // the logical buffer, where the output does not hold all of it
  Buffer scratch_;  // elements behind it
  std::vector<Sending> sending_;
  std::vector<Ticket> arriving_;
  // The call that runs:
  Call call_;
  Tag tag_ = 0;
  int step_ = -1;  // how many came before
  size_t segment_bytes_ = 0;
  Memory data_;
  Memory beyond_;
  Deadline deadline_ = Deadline::after({});
};

}  // namespace gxp
