#include "lib/collective/engine/shared_memory/group_sync.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

GroupSync::GroupSync(SharedArena& arena, FlightRecorder& recorder, std::vector<int> members,
                     int rank, int group)
    : arena_(arena),
      recorder_(&recorder),
      members_(std::move(members)),
      rank_(rank),
      group_(group),
      seen_(members_.size()) {
  const auto ranks = arena_.ranks();
  for (const int member : members_)
    places_.push_back(int(std::ranges::find(ranks, member) - ranks.begin()));
  arena_.prefault(group_);
}

int64_t GroupSync::now_ns() {
  return std::chrono::nanoseconds(Deadline::Clock::now().time_since_epoch()).count();
}

uint32_t GroupSync::begin() {
  recorded_ = Recorded::kNot;
  lingered_ = false;
  return next_index_++;
}

void GroupSync::end(const Invocation& inv) {
  if (inv.is_quick() && !lingered_) {
    recorder_->done_at_once();
  } else {
    recorder_->done();
  }
}

void GroupSync::await_all(const Invocation& inv, size_t calls_before) {
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank != rank_) await(inv, rank, inv.index - uint32_t(calls_before) + 1);
  }
}

void GroupSync::publish_line(const Invocation& inv) {
  write_note(inv, slots(rank_));
  arena_.publish(line(rank_, inv.index).word, inv.stamp, members_);
  prefetch_to_write(&line(rank_, inv.index + 1));
  record(inv, inv.is_quick() ? Deadline::Clock::time_point{} : Deadline::Clock::now());
}

// Once in a call, while others learn that this rank has entered it; with the exact time, too, where
// it must wait anyway, or is not over in some 10 us.
void GroupSync::record(const Invocation& inv, Deadline::Clock::time_point now) {
  using enum Recorded;
  const bool exactly = now != Deadline::Clock::time_point{};
  if (recorded_ == kNot) {
    recorder_->enter(inv.call, inv.shape.algorithm, uint8_t(group_), now);
  } else if (recorded_ == kRoughly && exactly) {
    recorder_->entered_at(now);
  } else {
    return;
  }
  recorded_ = exactly ? kExactly : kRoughly;
}

template <class Ready>
void GroupSync::wait(const Invocation& inv, int rank, uint64_t step, const Ready& ready) {
  if (SharedArena::look(ready)) return;
  record(inv, Deadline::Clock::now());
  const int& member = members_[size_t(rank)];
  recorder_->step(int(step), member);
  lingered_ |= !arena_.wait(ready, std::span(&member, 1), inv.deadline);
}

// Checks that `rank` makes the same call, if it is this one.
void GroupSync::await(const Invocation& inv, int rank, uint32_t call_index) {
  uint64_t& seen = seen_[size_t(rank)];
  if (has_reached(seen, call_index)) return;
  const SharedLine& theirs = line(rank, call_index);
  const auto ready = [&] {
    return has_reached(theirs.word.load(std::memory_order_acquire), call_index);
  };
  wait(inv, rank, 0, ready);
  seen = theirs.word.load(std::memory_order_acquire);
  if (call_index == inv.index && seen != inv.stamp) fail_mismatch(inv, rank);
}

void GroupSync::fail_mismatch(const Invocation& inv, int rank) {
  fail(ErrorKind::kPeer, "rank {} called {} where rank {} called {}", rank,
       read_note(slots(rank), inv.index), rank_, to_string(inv.call, inv.space));
}

void GroupSync::publish_phase(uint64_t phase) {
  arena_.publish(arena_.phase(group_, places_[size_t(rank_)]).count, phase, members_);
}

void GroupSync::await_phase(const Invocation& inv, uint64_t phase, uint64_t step) {
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto& count = arena_.phase(group_, places_[size_t(rank)]).count;
    const auto ready = [&] { return count.load(std::memory_order_acquire) >= phase; };
    wait(inv, rank, step, ready);
  }
}

void GroupSync::synchronise(const Invocation& inv) {
  publish_phase(++phase_);
  await_phase(inv, phase_, 1);
}

}  // namespace gxp
