#include "lib/collective/job_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "lib/base/error.h"
#include "lib/topo/sources.h"

namespace gxp {
namespace {

std::vector<RankPlace> places_of(int ranks, std::span<const int> hosts) {
  std::vector<RankPlace> places;
  std::vector<int> ranks_of_host(size_t(ranks), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t host = hosts.empty() ? 0 : size_t(hosts[size_t(rank)]);
    places.push_back({host, ranks_of_host[host]++});
  }
  return places;
}

void check_room(const Topology& topology, const ClusterPlan& plan,
                std::span<const RankPlace> places) {
  for (const RankPlace& place : places) {
    if (plan.kinds.empty()) return;  // the order of hosts alone
    const TopologyHost& host = topology.hosts[place.host];
    if (place.gpu < plan.kinds[host.tree].gpus()) continue;
    fail(ErrorKind::kConfig,
         "plan by comm.topology = {}: host {} has {} GPUs and the job more ranks there; start "
         "fewer, or name another topology",
         topology.name, host.name, plan.kinds[host.tree].gpus());
  }
}

// "ranks rings... -1 groups...", for the store.
std::string to_text(const RankPlan& plan) {
  return fmt::format("{} {} -1 {}", plan.ranks, fmt::join(plan.rings, " "),
                     fmt::join(plan.groups, " "));
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

RankPlan plan_for_job(const std::string& what, int ranks, std::span<const int> hosts) {
  if (what.empty()) return {};
  const size_t count = hosts.empty() ? 1 : size_t(std::ranges::max(hosts)) + 1;
  Topology topology = load_topology(what);
  if (topology.hosts.size() == 1) topology.hosts.resize(count, topology.hosts[0]);
  if (topology.hosts.size() != count) {
    fail(ErrorKind::kConfig,
         "plan by comm.topology = {}: it has {} hosts and the job {}; name a topology of as many, "
         "or of one that all are like",
         what, topology.hosts.size(), count);
  }
  const std::vector<RankPlace> places = places_of(ranks, hosts);
  const ClusterPlan plan = plan_cluster(topology);
  check_room(topology, plan, places);
  return plan_of_ranks(topology, plan, places);
}

RankPlan share_plan_for_job(const std::string& what, std::span<const int> hosts, Store& store,
                            int ranks, Deadline deadline) {
  constexpr std::string_view kKey = "rank plan";
  if (what.empty()) return {};
  if (store.rank() != 0) return parse_plan(store.get(kKey, deadline));
  RankPlan plan = plan_for_job(what, ranks, hosts);
  store.set(kKey, to_text(plan));
  return plan;
}

}  // namespace gxp
