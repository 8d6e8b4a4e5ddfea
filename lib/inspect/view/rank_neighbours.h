// Whom a rank exchanges data with in the planned rings and trees (lib/topo/rings/cluster_plan.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/topo/rings/rank_seats.h"

namespace gxp {

struct RingNeighbours {
  std::vector<int64_t> channels{};  // that have the same
  int previous = 0;
  int next = 0;
  std::string previous_by{}, next_by{};  // a path type, or this host's NIC to and from another host
  double gb_per_s = 0;                   // of all these channels
};

// Trees of several hosts are two, each with half of a channel's data; one host has a chain.
struct TreeNeighbours {
  std::vector<int64_t> channels{};  // that have the same
  std::vector<int64_t> trees{};     // likewise
  std::optional<int> parent{};      // none: it is the root
  std::vector<int64_t> children{};
};

struct RankNeighbours {
  std::vector<RingNeighbours> rings{};
  std::vector<TreeNeighbours> trees{};
  std::vector<std::string>
      notes{};  // why there are none, or what the plan changes: a sentence each
};

// Precondition: a seat of `seats`, which are those of `topology`.
//   Cost  that of plan_cluster().
RankNeighbours find_neighbours(const Topology& topology, const RankSeats& seats,
                               RankSeats::Seat seat);

}  // namespace gxp
