// Runs a call in memory that the ranks of a group see of each other (transport/arena/shared_space.h): the
// algorithm `direct`, without messages. The bits are those of reduction_tree.h (fold_all).
//
// Every call publishes one line. What happens then depends on the ways that are to be taken
// (shared_ways.h), the same on all ranks, and on where the buffers lie: all ranks decide alike,
// since the lines tell each where the others' buffers are.
//   copied  Each rank copies its whole input beside its line and takes from the peers' copies what
//           it needs: one synchronisation. For small inputs; the smallest fit the line itself.
//   placed  All buffers are communicator memory: each rank takes what it needs from the peers'
//           inputs; of an all-reduce, rank r folds part r of all inputs and stores the sum into all
//           outputs; of a broadcast, it copies part r to all; of a gather, it gives its own. Chunks
//           of an all-to-all in place are swapped, half of each pair by either rank. A second
//           synchronisation ends it.
//   kernel  None is, but the kernel lets each rank reach the others' memory: as placed, by copies
//           that the kernel makes (transport/arena/peer_memory.h). What is to be folded is fetched into a
//           tile that stays in the L2 cache. Where the kernel may not, as copied or tiles.
//   tiles   What peers need of a rank's input goes through tiles that stay in the L2 cache, and so
//           do the sums that come back. One synchronisation a tile, in which the folds of one tile
//           overlap the copies of its neighbours.
// Cost for p ranks and K bytes of an all-reduce, bytes read and written by each rank: placed 2K;
// kernel 2K, and as much in the caches; tiles (4 - 2/p)K or so, half of it in the caches.
//   Errors   kPeer: a peer is lost, late, or has made another call; both calls are named.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/shared_memory/shared_call.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/collective/tune/shared_ways.h"
#include "lib/collective/tune/way_trial.h"
#include "lib/transport/arena/shared_space.h"

namespace gxp {

class SharedExecutor {
 public:
  // `members[i]` is the transport's rank of the group's rank i; `rank` is this one's number in the
  // group; `group` is below SharedSpace::kGroups, the same on all members and of no other group of
  // theirs. The recorder is told each call, and whom this rank waits for.
  SharedExecutor(SharedSpace& space, FlightRecorder& recorder, std::vector<int> members, int rank,
                 int group);

  // Memory as extents_of() says, on the host. False, with nothing done: messages are the way for
  // such memory. So whether they are to be sent costs one synchronisation.
  bool execute(const Call& call, ConstMemory input, Memory output, Deadline deadline,
               const SharedWays& ways);
  // Who is told from now on; outlives the executor, or the next who is told.
  void report_to(FlightRecorder& recorder) { recorder_ = &recorder; }
  // Bytes of a tile of all parts together, at most kMostTileBytes; the same on all ranks.
  void use_tiles_of(size_t bytes) { tile_bytes_ = bytes; }
  static constexpr size_t kMostTileBytes = 256 << 10;

 private:
  // Folded, and then divided or copied, while in L1.
  static constexpr size_t kFoldedBytes = 16 << 10;
  // Where a peer's buffers are, as its line says it; 0: not in communicator memory.
  struct Placement {
    uint64_t input = 0;
    uint64_t output = 0;
    [[nodiscard]] bool everywhere() const { return input != 0 && output != 0; }
  };
  // On a line behind the placement, unless that is everywhere() and nothing was timed: where they
  // are for that process.
  struct Addresses {
    uint64_t input = 0;
    uint64_t output = 0;
    uint64_t reaches_all = 0;  // whether the rank can copy from and to any peer's memory
    int64_t entered_ns = 0;    // when the rank came to the last call that was timed
    int64_t left_ns = 0;       // and ended it
  };
  // The ranks' buffers, by rank; what a rank does not have, or nobody takes or gives, may be null.
  struct Buffers {
    bool mapped = true;  // here; else they are addresses in the ranks' processes
    std::vector<const std::byte*> inputs{};
    std::vector<std::byte*> outputs{};
  };
  // A call that was made before, and where the ranks' buffers were then.
  struct Known {
    SharedCall shape;
    std::vector<Placement> placements;  // by rank
    Buffers buffers{};                  // all of the placements; empty: not resolved
    enum Memory { kOrdinary, kInPlace, kCommunicator };
    Memory memory = kOrdinary;          // of the last such call; in place: the first rank's was
    std::array<WayTrial*, 3> trials{};  // by memory
  };
  // The call that runs.
  struct Job {
    const Call& call;
    Known& known;
    uint32_t turn = 0;  // how many calls ran here before; those by messages do not count
    uint64_t word = 0;
    const std::byte* input_data = nullptr;
    std::byte* output_data = nullptr;
    int rank = 0;
    Deadline deadline;

    [[nodiscard]] const SharedCall& shape() const { return known.shape; }
    [[nodiscard]] size_t bytes() const { return call.count * size_of(call.dtype); }
    [[nodiscard]] Range own_input() const { return known.shape.inputs[size_t(rank)]; }
    [[nodiscard]] Range own_output() const { return known.shape.outputs[size_t(rank)]; }
    [[nodiscard]] Range part_of(int member) const { return known.shape.parts[size_t(member)]; }
    [[nodiscard]] const std::byte* input(Range range) const {
      return input_data + (range.begin - own_input().begin);
    }
    [[nodiscard]] std::byte* output(Range range) const {
      return output_data + (range.begin - own_output().begin);
    }
    [[nodiscard]] bool in_place(Range range) const { return input(range) == output(range); }
    // Inputs are scaled before they are folded, so never folded where they are.
    [[nodiscard]] bool is_scaled() const {
      return call.op == ReduceOp::kPreMulSum && reduces(call.collective);
    }
    // Over in some 10 us, if nobody is late.
    [[nodiscard]] bool is_quick() const { return shape().largest_input <= size_t{64} << 10; }
  };

  [[nodiscard]] int world_size() const { return int(members_.size()); }
  [[nodiscard]] SharedSlots& slots_of(int rank) const {
    return space_.slots(group_, members_[size_t(rank)]);
  }
  [[nodiscard]] SharedLine& line_of(int rank, uint32_t turn) const {
    return space_.line(group_, places_[size_t(rank)], turn);
  }
  Known& find(const Call& call);
  static const Placement& placement_of(const SharedLine& line) {
    return *reinterpret_cast<const Placement*>(line.payload);
  }
  static const Addresses& addresses_of(const SharedLine& line) {
    return *reinterpret_cast<const Addresses*>(line.payload + sizeof(Placement));
  }
  // Where a small input's copy is.
  [[nodiscard]] std::byte* copy_of(const Job& job, int rank) const;

  void run_copied(const Job& job);
  void copy_to_slot(const Job& job);
  void prefetch_next_copy(const Job& job);
  void take_from_copies(const Job& job);

  // shared_placed.cc
  bool copies_anyway(const Job& job, const SharedWays& ways);
  bool run_placed(const Job& job, const SharedWays& ways);
  bool run_by(SharedWay way, const Job& job, size_t direct, bool copied);
  [[nodiscard]] Placement place(const Job& job) const;
  [[nodiscard]] bool is_small(const Job& job) const {
    return job.shape().largest_input <= most_copied_;
  }
  const Buffers* find_buffers(const Job& job, size_t direct, bool by_kernel);
  WayTrial* find_trial(const Job& job, const SharedWays& ways);
  void settle_trial(const Job& job, size_t direct);
  void stop_clock();
  void publish_placement(const Job& job, const Placement& mine);
  size_t gather_placements(const Job& job, const Placement& mine);
  void resolve(Known& known) const;
  bool find_remote_buffers(const Job& job);
  [[nodiscard]] static bool placed_alike(const Job& job, const Buffers& buffers);
  void run_direct(const Job& job, const Buffers& buffers);
  void copy_or_fold(const Job& job, const Buffers& buffers);
  void pull_and_fold(const Job& job, const Buffers& buffers);
  void spread_sum(const Job& job, const Buffers& buffers, Range piece, const std::byte* sum);
  void fold_share(const Job& job, const Buffers& buffers);
  void give_part(const Job& job, const Buffers& buffers);
  void spread_share(const Job& job, const Buffers& buffers);
  void swap_chunks(const Job& job, const Buffers& buffers);
  // To here and from here, where `there` is one of the rank's buffers.
  void fetch(bool mapped, int rank, const std::byte* there, std::byte* here, size_t bytes) const;
  void store(bool mapped, int rank, std::byte* there, const std::byte* here, size_t bytes) const;

  void wait_for_line(const Job& job);
  void publish_line(const Job& job);
  void await(const Job& job, int rank, uint32_t turn);
  [[noreturn]] void fail_mismatch(const Job& job, int rank);
  void publish_phase(uint64_t phase);
  // `step`: for the recorder.
  void await_phase(const Job& job, uint64_t phase, uint64_t step);
  template <class Ready>
  void wait(const Job& job, int rank, uint64_t step, const Ready& ready);
  void record(const Job& job, Deadline::Clock::time_point now);  // {}: is not worth a clock
  void finish(const Job& job);

  void take(const Job& job, const Buffers& buffers);
  void keep_own(const Job& job, Range range);
  // To the first target; to the others as well, or `by_copies` of it.
  void fold_sources(const Job& job, size_t bytes, bool by_copies = false);

  // shared_staging.cc
  struct Tiling;
  void run_staged(const Job& job);
  void stage_in(const Job& job, const Tiling& tiling, uint64_t tile);
  void fold_tile(const Job& job, const Tiling& tiling, uint64_t tile);
  void copy_out(const Job& job, const Tiling& tiling, uint64_t tile);

  SharedSpace& space_;
  FlightRecorder* recorder_;
  std::vector<int> members_;
  std::vector<int> places_;  // of the members among the ranks of the space
  int rank_;
  int group_;
  uint32_t turn_ = 0;   // of the next call
  uint64_t phase_ = 0;  // of all members, between calls
  uint64_t lines_used_ = 0;
  std::vector<uint64_t> seen_;  // by rank: the last word that was read of it
  // A call that was timed; the next lines tell what it took each rank.
  struct Timed {
    WayTrial& trial;
    SharedWay way;
    size_t bytes;
    int64_t entered_ns;   // by this rank
    int64_t left_ns = 0;  // 0: it runs
  };
  std::optional<Timed> timed_;
  // Of calls alike in collective, memory, possible ways and order of magnitude.
  std::map<std::array<int, 4>, WayTrial> trials_;
  std::array<std::optional<Known>, 8> known_;
  size_t next_known_ = 0;  // to be replaced
  // Of the call that runs:
  enum class Recorded : uint8_t { kNot, kRoughly, kExactly };  // when it began
  Recorded recorded_ = Recorded::kNot;
  bool lingered_ = false;                  // for longer than it may spin
  Buffers copies_;                         // of small inputs
  Buffers remote_{.mapped = false};        // what the kernel reaches
  std::vector<const std::byte*> sources_;  // of the fold that runs, by rank
  std::vector<std::byte*> targets_;
  size_t most_copied_;  // bytes of an input
  size_t tile_bytes_ = kMostTileBytes;
};

}  // namespace gxp
