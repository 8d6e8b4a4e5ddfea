#include "lib/topo/plan/rank_plan.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("a part of the ranks keeps their order", "[topo][plan]") {
  const RankPlan plan{.ranks = 4, .rings = {3, 1, 2, 0, 0, 1, 2, 3}, .groups = {0, 1, 1, 0}};
  const RankPlan part{.ranks = 3, .rings = {0, 2, 1, 1, 2, 0}, .groups = {0, 0, 1}};
  CHECK(plan_of_members(plan, std::vector<int>{3, 0, 1}) == part);
  CHECK(plan_of_members(plan, std::vector<int>{2, 1}).groups.empty());
  CHECK(plan_of_members({}, std::vector<int>{1}) == RankPlan{});
}

}  // namespace gxp
