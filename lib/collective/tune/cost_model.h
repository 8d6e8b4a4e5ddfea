// The time of algorithms, from the constants of a profile, or as measured.
// Pure.
//
// An algorithm is recorded once for the group (schedule.h), and its steps are sorted into the
// rounds of one_port_replay.h, empty messages left out. The time of a round is that of the most
// loaded rank, or the time that the host's cores need for the messages of all ranks, whichever is
// longer. With the curves of the profile's link class, the amounts and flags of Round, r ranks on
// the largest host, of which c share a core, and x'(amount) = x(amount) - x(0):
//   seconds = start, unless some round is all_relay; + the sum over the rounds of
//     max(hop'(busiest), exchange'(moved / r))           if there are messages
//     + first, or min(first, hop(0)) without everybody   if after_wait, or hears_another and c > 1
//     + fold(max(folded / c, folded_total / r)) + fold_later(folded_later) + copy(copied)
//   first = exchange(0) if some round is all_relay, swap(0) if none
// so a ring's round, in which all ranks do the same, is exactly one exchange. Between hosts a round
// takes at least the time of the link that most bytes cross: exchange(crossing). All other times
// are scaled by c over the c of the ranks that were measured.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/collective/algorithm/algorithm.h"
#include "lib/collective/tune/profile.h"

namespace gxp {

// The links between the ranks of a group. The same on every rank.
struct GroupTopology {
  int world_size = 1;
  std::span<const int> hosts{};  // the host of each rank, numbered from 0; empty: all on one
  std::string_view transport{};  // "shm", "tcp", ...: names the link class in the profile
  bool shared_arena = false;  // all ranks see each other's memory (transport/arena/shared_arena.h)
  RankOrders orders{};
};

// Equal rounds. Amounts are parts of the logical buffer: 1 is all of it.
struct Round {
  int times = 1;
  double busiest = 0;       // most that a rank sends within its host, or receives
  double moved = 0;         // all messages inside the host with the most
  double folded = 0;        // most that a rank folds
  double folded_total = 0;  // all folds of the host that has most
  double folded_later = 0;  // most that a rank folds after it has arrived
  double copied = 0;        // most that a rank copies within its memory
  double crossing = 0;      // most that leaves or reaches a host
  bool messages = false;    // there are some, if only empty ones
  // Some rank sends right after it has received: the latency of that message is not hidden behind
  // an earlier send. True of the first round as well.
  bool after_wait = false;
  // Some rank receives from a rank that it has not heard from, though from others: where ranks
  // share a core, the new one may not have run yet.
  bool hears_another = false;
  bool everybody = false;  // all ranks receive
  // Every rank receives, and passes on what the round before brought, to another rank than the one
  // that sent it.
  bool all_relay = false;
  bool operator==(const Round&) const = default;
};

// Cost: that of recording.
std::vector<Round> rounds_of(const Algorithm& algorithm, const CallShape& shape);

// Threads: any; it does not change. Cost of making: some 100 us for 4 ranks.
class CostModel {
 public:
  // Borrows `topology.hosts` and the profile.
  CostModel(const GroupTopology& topology, const Profile& profile);
  [[nodiscard]] const GroupTopology& topology() const { return topology_; }
  [[nodiscard]] const Profile& profile() const { return *profile_; }

  // Seconds for `bytes` of the logical buffer. `segment_bytes` 0: not pipelined. Never falls
  // with `bytes`. Cost: below 1 us.
  [[nodiscard]] double seconds(const Algorithm& algorithm, double bytes, double segment_bytes,
                               MemoryOrigin origin) const;
  // The time of the algorithm itself, if the profile has a measurement: with this number of ranks
  // over this transport, all on one host or one on each, and the model's segment. Never falls with
  // `bytes`. Cost: as seconds().
  [[nodiscard]] std::optional<double> measured(const Algorithm& algorithm, double bytes,
                                               MemoryOrigin origin) const;
  // Whether the ranks run it in memory that they share, without messages.
  [[nodiscard]] bool in_shared_memory(const Algorithm& algorithm) const;
  // Whether segments make a difference to it.
  [[nodiscard]] bool pipelined(const Algorithm& algorithm) const;

 private:
  // The algorithm in one piece, and in so many segments.
  struct Recorded {
    std::vector<Round> whole;
    std::vector<Round> in_few;
    std::vector<Round> in_many;
  };
  static constexpr double kFew = 8;
  static constexpr double kMany = 16;

  struct Curves {
    const CostCurve* start = nullptr;
    const CostCurve* hop = nullptr;
    const CostCurve* swap = nullptr;
    const CostCurve* exchange = nullptr;
    const CostCurve* fold = nullptr;
    const CostCurve* fold_later = nullptr;
    const CostCurve* copy = nullptr;
  };
  // What the parts of a round are parts of, and how much is in use in the course of all rounds.
  struct Amount {
    double bytes = 0;
    double whole = 0;
    // `parts`: how many such messages the curve's measurement had in use.
    [[nodiscard]] double at(const CostCurve& curve, double part, double parts) const {
      return curve.at_part(bytes * part, whole / parts);
    }
  };

  [[nodiscard]] Recorded record_all(const Algorithm& algorithm) const;
  [[nodiscard]] double seconds_of(std::span<const Round> rounds, const Amount& amount) const;
  [[nodiscard]] double seconds_of(const Round& round, double first_byte,
                                  const Amount& amount) const;
  [[nodiscard]] double placing_seconds(Collective collective, double bytes) const;
  [[nodiscard]] const LinkClass* link_of_these_ranks() const;
  void find_curves(const LinkClass* link_of_these_ranks);

  GroupTopology topology_;
  const Profile* profile_;
  int host_ranks_ = 1;                  // of the host that has most
  double crowding_ = 1;                 // ranks of that host to a core, here; at least 1
  double local_scale_ = 1;              // from the measured link class to this number of ranks
  const LinkClass* local_;              // inside a host
  const LinkClass* between_ = nullptr;  // of hosts; null: there is one
  Curves curves_;                       // of local_
  std::map<const Algorithm*, Recorded> recorded_;
  // By origin; null: there is none.
  std::map<std::pair<Collective, MemoryOrigin>, const CostCurve*> shared_;
  std::map<std::pair<const Algorithm*, MemoryOrigin>, const CostCurve*> measured_;
};

}  // namespace gxp
