#include "lib/tools/topology/rings/rank_seats.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/nccl/nccl_host_routes.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/tools/topology/rings/rank_order.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/plan/plan_file.h"

namespace gxp {
namespace {

// The source's ranks by place; none unless each GPU has one of its own.
std::vector<int> ranks_of_source(const HostTree& host, const std::vector<PartId>& places) {
  std::vector<int> ranks;
  for (const PartId part : places) {
    if (const auto& rank = info_of<GpuInfo>(host[part]).rank) ranks.push_back(*rank);
  }
  const std::set<int> distinct(ranks.begin(), ranks.end());
  return distinct.size() == places.size() ? ranks : std::vector<int>{};
}

}  // namespace

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

RankSeats::Kind RankSeats::read_kind(const HostTree& host) {
  const NcclPaths paths(host);
  std::vector<PartId> places = places_of_plan(paths);
  places.resize(paths.gpus().size());
  const std::vector<int> said = ranks_of_source(host, places);
  Kind kind{.place = std::vector<int>(places.size())};
  std::iota(kind.place.begin(), kind.place.end(), 0);
  if (!said.empty())
    std::ranges::sort(kind.place, {}, [&](int place) { return said[size_t(place)]; });
  for (const int place : kind.place) {
    kind.gpus.push_back(places[size_t(place)]);
    if (!said.empty()) kind.said.push_back(said[size_t(place)]);
  }
  return kind;
}

RankSeats::RankSeats(const Topology& topology) : topology_(&topology) {
  if (topology.hosts.empty())
    fail(ErrorKind::kConfig, "find the ranks of {}: {} describes no host", topology.name,
         topology.source);
  for (const auto& tree : topology.trees) {
    if (const size_t hosts = count_hosts(*tree); hosts > 1)
      fail(
          ErrorKind::kConfig,
          "find the ranks of {}: it describes {} that NVLink joins, which gxp does not take apart; "
          "give the topology of one host, and their number with --hosts",
          topology.name, counted(hosts, "host"));
    kinds_.push_back(read_kind(*tree));
  }
  for (const TopologyHost& host : topology.hosts) {
    if (host.tree == kNoTree)
      fail(ErrorKind::kConfig,
           "find the ranks of {}: the hardware of host {} is unknown, so its number of ranks is "
           "too",
           topology.name, host.name);
    first_.push_back(first_.back() + int(kinds_[host.tree].gpus.size()));
  }
}

RankSeats::Seat RankSeats::find(int rank) const {
  const size_t hosts = topology_->hosts.size();
  const std::string_view remedy =
      hosts == 1 ? "; for a job on several such hosts, give their number with --hosts" : "";
  if (const Kind& kind = kind_of(0); hosts == 1 && !kind.said.empty()) {
    const auto found = std::ranges::find(kind.said, rank);
    if (found != kind.said.end()) return {0, int(found - kind.said.begin())};
    fail(ErrorKind::kUsage, "show rank {} of {}: it has {} according to {}{}", rank,
         topology_->name, counted(kind.said.size(), "rank"), joined(kind.said, ", "), remedy);
  }
  if (rank < 0 || rank >= ranks())
    fail(ErrorKind::kUsage, "show rank {} of {}: it has {}, numbered from 0, one per GPU of {}{}",
         rank, topology_->name, counted(size_t(ranks()), "rank"), counted(hosts, "host"), remedy);
  const auto after = std::upper_bound(first_.begin(), first_.end(), rank);
  return {size_t(after - first_.begin()) - 1, rank - *(after - 1)};
}

int RankSeats::rank_at(Seat seat) const {
  const Kind& kind = kind_of(seat.host);
  if (topology_->hosts.size() == 1 && !kind.said.empty()) return kind.said[size_t(seat.local_rank)];
  return first_[seat.host] + seat.local_rank;
}

const std::vector<PartId>& RankSeats::gpus(size_t host) const { return kind_of(host).gpus; }

int RankSeats::place_of(Seat seat) const {
  return kind_of(seat.host).place[size_t(seat.local_rank)];
}

const RankSeats::Kind& RankSeats::kind_of(size_t host) const {
  return kinds_[topology_->hosts[host].tree];
}

RankSeats::Seat RankSeats::seat_of_place(size_t host, int place) const {
  const std::vector<int>& places = kind_of(host).place;
  return {host, int(std::ranges::find(places, place) - places.begin())};
}

}  // namespace gxp
