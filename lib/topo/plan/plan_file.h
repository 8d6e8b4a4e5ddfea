// The file of a plan for ranks: `gxp topo plan --format rank-plan` writes it, comm.topology names it.
//
// JSON, one object:
//   schema      "gxp.rank-plan/1"
//   topology    what was planned, for messages
// and of a topology whose GPUs are known:
//   ranks_of_hosts  how many ranks each host has room for; the k-th of a host is its local rank k
//   rings           one list a channel: all these ranks in its order, numbered host by host
//   groups          the group of each, as RankPlan::groups
// or of hosts alone:
//   host_order      indices of the hosts, so that hosts of a switch follow each other
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/plan/rank_plan.h"

namespace gxp {

struct PlanFile {
  std::string topology{};
  std::vector<int> ranks_of_hosts{};  // empty: of hosts alone
  RankPlan plan{};                    // for as many ranks as there is room for
  std::vector<int> host_order{};

  [[nodiscard]] size_t hosts() const {
    return ranks_of_hosts.empty() ? host_order.size() : ranks_of_hosts.size();
  }
  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

std::string write_plan_file(const PlanFile& file);
// `name` is the file's, for messages. kCorrupt: it is no such file, with what is wrong, and the
// command that writes one.
PlanFile read_plan_file(std::string_view text, const std::string& name);

// The plan for a job's ranks. `hosts`: of each rank, numbered from 0 in order of appearance, which
// is the order of the plan's; empty: all on one. A host may have fewer ranks than there is room for.
//   Errors  kConfig: another number of hosts, or more ranks on a host.
RankPlan plan_for_ranks(const PlanFile& file, int ranks, std::span<const int> hosts);

}  // namespace gxp
