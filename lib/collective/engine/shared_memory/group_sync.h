// How the ranks of a group synchronise in shared memory (transport/arena/shared_lines.h): in each
// call a rank publishes one line; inside a call it advances its phase at each further
// synchronisation. Ranks that only publish may be ahead of their peers by SharedSlots::kLines
// calls.
//   Order   begin(); wait_for_line(); publish_line(); then the others as often as wanted; end().
//   Errors  kPeer: a peer is lost, late, or has made another call; both calls are named.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/shared_memory/shared_call.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/transport/arena/shared_arena.h"

namespace gxp {

class GroupSync {
 public:
  // `members[i]` is the transport's rank of the group's rank i; `rank` is this one's number in the
  // group; `group` is below SharedArena::kGroups, the same on all members and of no other group of
  // theirs. Each call, and the ranks that this rank waits for, are reported to the recorder.
  GroupSync(SharedArena& arena, FlightRecorder& recorder, std::vector<int> members, int rank,
            int group);
  // Reports to this recorder from now on; it outlives this object, or the next call.
  void report_to(FlightRecorder& recorder) { recorder_ = &recorder; }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world_size() const { return int(members_.size()); }
  [[nodiscard]] SharedArena& arena() const { return arena_; }
  [[nodiscard]] int group() const { return group_; }
  [[nodiscard]] int member(int rank) const { return members_[size_t(rank)]; }
  [[nodiscard]] SharedSlots& slots(int rank) const { return arena_.slots(group_, member(rank)); }
  [[nodiscard]] SharedLine& line(int rank, uint32_t call_index) const {
    return arena_.line(group_, places_[size_t(rank)], call_index);
  }
  // The time by a clock that all processes of the host share.
  static int64_t now_ns();

  // Returns the index of the call that begins; calls by messages do not count.
  uint32_t begin();
  void end(const Invocation& inv);

  // Return when this rank may overwrite the call's line, or its slot for copies: all ranks have
  // then left the earlier call that used it, since they have entered the one after that.
  void wait_for_line(const Invocation& inv) { await_all(inv, SharedSlots::kLines); }
  void wait_for_copy(const Invocation& inv) { await_all(inv, SharedSlots::kCopies); }
  // Tells the peers that this rank has entered the call, after the line's payload was written.
  void publish_line(const Invocation& inv);
  // Returns when `rank` has entered the call.
  void await(const Invocation& inv, int rank) { await(inv, rank, inv.index); }

  // The last phase that all ranks have passed.
  [[nodiscard]] uint64_t phase() const { return phase_; }
  void set_phase(uint64_t phase) { phase_ = phase; }
  void publish_phase(uint64_t phase);
  // Returns when all ranks have published `phase`. `step`: for the recorder.
  void await_phase(const Invocation& inv, uint64_t phase, uint64_t step);
  // A barrier within the call, by one more phase.
  void synchronise(const Invocation& inv);
  void prefetch_phase() { prefetch_to_write(&arena_.phase(group_, places_[size_t(rank_)])); }

 private:
  void await(const Invocation& inv, int rank, uint32_t call_index);
  void await_all(const Invocation& inv, size_t calls_before);
  [[noreturn]] void fail_mismatch(const Invocation& inv, int rank);
  template <class Ready>
  void wait(const Invocation& inv, int rank, uint64_t step, const Ready& ready);
  void record(const Invocation& inv, Deadline::Clock::time_point now);  // {}: not worth a clock

  SharedArena& arena_;
  FlightRecorder* recorder_;
  std::vector<int> members_;
  std::vector<int> places_;  // of the members among the ranks of the arena
  int rank_;
  int group_;
  uint32_t next_index_ = 0;
  uint64_t phase_ = 0;
  std::vector<uint64_t> seen_;  // by rank: the last stamp that was read of it
  // The call that runs:
  enum class Recorded : uint8_t { kNot, kRoughly, kExactly };  // when it began
  Recorded recorded_ = Recorded::kNot;
  bool lingered_ = false;  // the rank waited longer than it may spin
};

}  // namespace gxp
