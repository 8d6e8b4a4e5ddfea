#include "lib/topo/plan/rank_plan.h"

#include "lib/base/numbering.h"

namespace gxp {

RankPlan plan_of_members(const RankPlan& plan, std::span<const int> members) {
  if (plan.ranks == 0) return {};
  std::vector<int> place(size_t(plan.ranks), -1);
  for (size_t i = 0; i < members.size(); ++i) place[size_t(members[i])] = int(i);
  RankPlan result{.ranks = int(members.size())};
  for (const int rank : plan.rings) {
    if (place[size_t(rank)] >= 0) result.rings.push_back(place[size_t(rank)]);
  }
  if (plan.groups.empty()) return result;
  for (const int member : members) result.groups.push_back(plan.groups[size_t(member)]);
  result.groups = number_if_different<int>(result.groups);
  return result;
}

}  // namespace gxp
