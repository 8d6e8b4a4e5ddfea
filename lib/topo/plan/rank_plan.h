// What a plan says about a job's ranks: the rings and groups of them. Plain data: communicators hold
// it, and know nothing of the graph that it was made from (tools/topology/rings/rank_order.h).
#pragma once

#include <span>
#include <vector>

namespace gxp {

struct RankPlan {
  int ranks = 0;  // 0: there is no plan
  // One ring channel after the other, each all ranks in its order.
  std::vector<int> rings{};
  // The group of each rank, numbered from 0: its host; of one host, the fewest sets of equal size
  // that are joined so much wider within than with each other that a hierarchical algorithm pays.
  // Empty: all are one.
  std::vector<int> groups{};

  friend bool operator==(const RankPlan&, const RankPlan&) = default;
};

// The plan of some of the ranks, which are renumbered by their index in `members`.
RankPlan plan_of_members(const RankPlan& plan, std::span<const int> members);

}  // namespace gxp
