#include "lib/collective/engine/device_memory/group_meetings.h"

#include <atomic>
#include <chrono>

#include "lib/base/error.h"

namespace gxp {
namespace {

// The host gives up at the deadline, and knows more of why; this is for a host that is stuck.
constexpr std::chrono::seconds kBehindDeadline{5};
// Who has come to all meetings may end before this rank's GPU has seen that.
constexpr std::chrono::seconds kGrace{1};

template <class Word>
Word load(const Word& word) {
  return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_acquire);
}

}  // namespace

GroupMeetings::GroupMeetings(DevicePeers& peers, const GroupSync& sync) : peers_(peers) {
  peers.clear_meetings(sync.group());
  for (int rank = 0; rank < sync.world_size(); ++rank) {
    members_.push_back(sync.member(rank));
    boards_.push_back(peers.board(members_.back(), sync.group()));
  }
  meeting_ = {.boards = boards_,
              .rank = size_t(sync.rank()),
              .state = peers.meeting_state(sync.group()),
              .control = peers.meeting_control(sync.group())};
}

uint32_t GroupMeetings::queue(Stream& stream, Deadline deadline) {
  const std::chrono::duration<double> limit =
      std::chrono::duration<double>(deadline.seconds()) + kBehindDeadline;
  std::atomic_ref(meeting_.control->limit_ns).store(uint64_t(limit.count() * 1e9));
  peers_.folds().meet(stream, meeting_);
  return ++queued_;
}

bool GroupMeetings::has_met(uint32_t meeting) const {
  return int32_t(load(meeting_.control->met) - meeting) >= 0;
}

void GroupMeetings::check() {
  if (Met(load(meeting_.control->missed)) != Met::kYes)
    fail(ErrorKind::kPeer, "rank {} has not come to a call that rank {}'s GPU works on",
         load(meeting_.control->awaited), meeting_.rank);
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    if (rank == meeting_.rank || !peers_.is_gone(members_[rank])) continue;
    if (!grace_) grace_ = Deadline::after(kGrace);
    if (grace_->expired())
      fail(ErrorKind::kPeer, "rank {} has ended, and rank {}'s GPU waits for it", rank,
           meeting_.rank);
  }
}

}  // namespace gxp
