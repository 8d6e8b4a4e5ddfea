#include "lib/collective/engine/job_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "lib/base/error.h"
#include "lib/topo/read/sources.h"
#include "lib/topo/rings/rank_order.h"
#include "lib/topo/rings/rank_seats.h"

namespace gxp {
namespace {

// The k-th rank of a host as local rank k; where nothing is known of what is in hosts, that number.
std::vector<RankPlace> places_of(const Topology& topology, int ranks, std::span<const int> hosts) {
  const auto seats = topology.trees.empty() ? std::nullopt : std::optional<RankSeats>(topology);
  std::vector<int> ranks_of_host(topology.hosts.size(), 0);
  std::vector<RankPlace> places;
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t host = hosts.empty() ? 0 : size_t(hosts[size_t(rank)]);
    const int local_rank = ranks_of_host[host]++;
    if (seats && size_t(local_rank) >= seats->gpus(host).size()) {
      fail(ErrorKind::kConfig,
           "plan by comm.topology = {}: host {} has {} GPUs and the job more ranks there; start "
           "fewer, or name another topology",
           topology.name, topology.hosts[host].name, seats->gpus(host).size());
    }
    places.push_back({host, seats ? seats->place_of({host, local_rank}) : local_rank});
  }
  return places;
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
  const std::vector<RankPlace> places = places_of(topology, ranks, hosts);
  return plan_of_ranks(topology, plan_cluster(topology), places);
}

RankPlan share_plan_for_job(const std::string& what, std::span<const int> hosts, Store& store,
                            int ranks, Deadline deadline) {
  if (what.empty()) return {};
  const auto make = [&] { return to_text(plan_for_job(what, ranks, hosts)); };
  return parse_plan(store.from_rank_0("rank plan", make, deadline));
}

}  // namespace gxp
