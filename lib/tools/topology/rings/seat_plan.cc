#include "lib/tools/topology/rings/seat_plan.h"

#include <vector>

#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/rank_order.h"
#include "lib/tools/topology/rings/rank_seats.h"

namespace gxp {

PlanFile plan_of_seats(const Topology& topology, const ClusterPlan& plan) {
  PlanFile file{.topology = topology.name};
  if (topology.trees.empty()) {
    file.host_order.assign(plan.host_order.begin(), plan.host_order.end());
    return file;
  }
  const RankSeats seats(topology);
  std::vector<RankLocation> places;
  for (size_t host = 0; host < topology.hosts.size(); ++host) {
    const int ranks = int(seats.gpus(host).size());
    file.ranks_of_hosts.push_back(ranks);
    for (int rank = 0; rank < ranks; ++rank) places.push_back({host, seats.place_of({host, rank})});
  }
  file.plan = plan_of_ranks(topology, plan, places);
  return file;
}

}  // namespace gxp
