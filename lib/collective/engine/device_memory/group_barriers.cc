#include "lib/collective/engine/device_memory/group_barriers.h"

#include <atomic>
#include <chrono>

#include "lib/base/error.h"

namespace gxp {
namespace {

// The host gives up at the deadline, and knows more of why; this is for a host that is stuck.
constexpr std::chrono::seconds kBehindDeadline{5};
// Who has come to all barriers may end before this rank's GPU has seen that.
constexpr std::chrono::seconds kGrace{1};

template <class Word>
Word load(const Word& word) {
  return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_acquire);
}

}  // namespace

GroupBarriers::GroupBarriers(DevicePeers& peers, const GroupSync& sync) : peers_(peers) {
  peers.clear_barriers(sync.group());
  for (int rank = 0; rank < sync.world_size(); ++rank) {
    members_.push_back(sync.member(rank));
    boards_.push_back(peers.board(members_.back(), sync.group()));
  }
  barrier_ = {.boards = boards_,
              .rank = size_t(sync.rank()),
              .state = peers.barrier_state(sync.group()),
              .control = peers.barrier_control(sync.group())};
}

uint32_t GroupBarriers::queue(Stream& stream, Deadline deadline) {
  const std::chrono::duration<double> limit =
      std::chrono::duration<double>(deadline.seconds()) + kBehindDeadline;
  std::atomic_ref(barrier_.control->limit_ns).store(uint64_t(limit.count() * 1e9));
  peers_.folds().barrier(stream, barrier_);
  return ++queued_;
}

bool GroupBarriers::has_passed(uint32_t barrier) const {
  return int32_t(load(barrier_.control->passed) - barrier) >= 0;
}

void GroupBarriers::check() {
  if (BarrierEnd(load(barrier_.control->missed)) != BarrierEnd::kPassed)
    fail(ErrorKind::kPeer, "rank {} has not entered a call that rank {}'s GPU is executing",
         load(barrier_.control->awaited), barrier_.rank);
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    if (rank == barrier_.rank || !peers_.is_gone(members_[rank])) continue;
    if (!grace_) grace_ = Deadline::after(kGrace);
    if (grace_->expired())
      fail(ErrorKind::kPeer, "rank {} has exited while rank {}'s GPU waits for it", rank,
           barrier_.rank);
  }
}

}  // namespace gxp
