#include "lib/collective/engine/job_plan.h"

#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text_file.h"
#include "lib/topo/plan/plan_file.h"

namespace gxp {
namespace {

constexpr size_t kMaxPlanBytes = size_t{256} << 20;

// "ranks rings... -1 groups...", for the store.
std::string to_text(const RankPlan& plan) {
  return fmt::format("{} {} -1 {}", plan.ranks, joined(plan.rings, " "), joined(plan.groups, " "));
}

RankPlan parse_plan(const std::string& text) {
  std::istringstream numbers(text);
  RankPlan plan;
  numbers >> plan.ranks;
  std::vector<int>* list = &plan.rings;
  for (int number = 0; numbers >> number;) {
    if (number == -1) {
      list = &plan.groups;
    } else {
      list->push_back(number);
    }
  }
  return plan;
}

}  // namespace

RankPlan plan_for_job(const std::string& file, int ranks, std::span<const int> hosts) {
  if (file.empty()) return {};
  try {
    const std::string text = read_text_file(file, kMaxPlanBytes, "the plan of comm.topology");
    return plan_for_ranks(read_plan_file(text, file), ranks, hosts);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kIo) throw;
    fail(ErrorKind::kIo,
         "{}; comm.topology must name a file written by gxp topo plan --from TOPOLOGY --hosts N "
         "--format rank-plan > FILE",
         error.what());
  }
}

RankPlan share_plan_for_job(const std::string& file, std::span<const int> hosts, Store& store,
                            int ranks, Deadline deadline) {
  if (file.empty()) return {};
  const auto make = [&] { return to_text(plan_for_job(file, ranks, hosts)); };
  return parse_plan(store.from_rank_0("rank plan", make, deadline));
}

}  // namespace gxp
