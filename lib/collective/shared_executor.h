// Runs a call in memory that the ranks of a group see of each other (transport/shared_space.h): the
// algorithm `direct`, without messages. The bits are those of halving-doubling (fold_all).
//
// Every call publishes one line. What happens then depends on the sizes and on where the buffers
// lie; all ranks decide alike, since the lines tell each where the others' buffers are.
//   copied  Each rank copies its whole input beside its line and takes from the peers' copies what
//           it needs: one synchronisation. For small inputs; the smallest fit the line itself.
//   direct  All buffers are communicator memory: each rank takes what it needs from the peers'
//           inputs; of an all-reduce, rank r folds part r of all inputs and stores the sum into all
//           outputs. Nothing is copied twice; a second synchronisation ends it.
//   staged  What peers need of a rank's input goes through tiles that stay in the L2 cache, and so
//           do the sums that come back. One synchronisation a tile, in which the folds of one tile
//           overlap the copies of its neighbours.
// Cost for p ranks and K bytes of an all-reduce, bytes read and written by each rank: direct 2K;
// staged (4 - 2/p)K or so, half of it in the caches.
//   Errors   kPeer: a peer is lost, late, or has made another call; both calls are named.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/call.h"
#include "lib/transport/shared_space.h"

namespace gxp {

class SharedExecutor {
 public:
  // `members[i]` is the transport's rank of the group's rank i; `rank` is this one's number in the
  // group; `group` is below SharedSpace::kGroups, the same on all members and of no other group of
  // theirs.
  SharedExecutor(SharedSpace& space, std::vector<int> members, int rank, int group);

  // Memory as extents_of() says, on the host.
  void execute(const Call& call, ConstMemory input, Memory output, Deadline deadline);

 private:
  // The call that runs. All ranges are bytes of the logical buffer.
  struct Job {
    Call call;
    uint32_t turn = 0;  // how many calls ran here before; those by messages do not count
    Range input_range;
    Range output_range;
    const std::byte* input_data = nullptr;
    std::byte* output_data = nullptr;
    Deadline deadline = Deadline::after({});
    [[nodiscard]] const std::byte* input(Range range) const {
      return input_data + (range.begin - input_range.begin);
    }
    [[nodiscard]] std::byte* output(Range range) const {
      return output_data + (range.begin - output_range.begin);
    }
    [[nodiscard]] bool in_place(Range range) const { return input(range) == output(range); }
  };
  // Where a peer's buffers are, as its line says it; 0: not in communicator memory.
  struct Placement {
    uint64_t input = 0;
    uint64_t output = 0;
    [[nodiscard]] bool everywhere() const { return input != 0 && output != 0; }
  };

  [[nodiscard]] int world_size() const { return int(members_.size()); }
  [[nodiscard]] SharedSlots& slots_of(int rank) const {
    return space_.slots(group_, members_[size_t(rank)]);
  }
  [[nodiscard]] SharedLine& line_of(int rank, uint32_t call) const {
    return space_.line(group_, rank, call);
  }
  [[nodiscard]] Range input_range_of(const Call& call, int rank) const;
  [[nodiscard]] Range part_of(const Call& call, int rank) const;
  // Where a small input's copy is.
  [[nodiscard]] std::byte* copy_of(const Job& job, int rank) const;

  void run_copied(const Job& job);
  void run_placed(const Job& job, bool small);
  void copy_to_slot(const Job& job);
  void take_from_copies(const Job& job);
  void run_direct(const Job& job);
  void run_staged(const Job& job);

  void wait_for_line(const Job& job);
  void publish_line(const Job& job);
  void await(const Job& job, int rank, uint32_t call);
  [[noreturn]] void fail_mismatch(const Job& job, int rank);
  void await_phase(const Job& job, uint64_t phase);

  void take(const Job& job);
  void take_part(const Job& job, int from, Range theirs, Range mine);
  void keep_own(const Job& job, Range range);
  void fold_sources(const Job& job, size_t bytes);

  struct Tiling;
  void stage_in(const Job& job, const Tiling& tiling, uint64_t tile);
  void fold_tile(const Job& job, const Tiling& tiling, uint64_t tile);
  void copy_out(const Job& job, const Tiling& tiling, uint64_t tile);

  SharedSpace& space_;
  std::vector<int> members_;
  int rank_;
  int group_;
  uint32_t turn_ = 0;   // of the next call
  uint64_t phase_ = 0;  // of all members, between calls
  uint64_t lines_used_ = 0;
  std::vector<uint64_t> seen_;  // by rank: the last word that was read of it
  // Of the call that runs, by rank:
  std::vector<Placement> placements_;
  std::vector<const std::byte*> inputs_;
  std::vector<const std::byte*> sources_;  // of the fold that runs
  std::vector<std::byte*> targets_;
};

}  // namespace gxp
