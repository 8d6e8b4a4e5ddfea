#include "lib/tools/topology/view/rank_view.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/cluster_plan.h"
#include "lib/tools/topology/view/part_words.h"
#include "lib/tools/topology/view/path_report.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/plan/double_binary_tree.h"

namespace gxp {
namespace {

class Viewer {
 public:
  Viewer(const Topology& topology, const RankSeats& seats, RankSeats::Seat seat)
      : topology_(topology),
        seats_(seats),
        seat_(seat),
        paths_(*topology.trees[topology.hosts[seat.host].tree]),
        routes_(paths_),
        gpu_(seats.gpus(seat.host)[size_t(seat.local_rank)]),
        own_ports_(routes_.local_ports(gpu_)) {}

  [[nodiscard]] RankView view() const {
    return {.rank = seats_.rank_at(seat_),
            .ranks = seats_.ranks(),
            .seat = seat_,
            .gpu = gpu_,
            .peers = peers(),
            .nics = nics(),
            .rails = topology_.hosts.size() > 1 ? rails() : std::vector<RankRail>{},
            .neighbours = find_neighbours(topology_, seats_, seat_),
            .notes = paths_.graph().notes};
  }

 private:
  [[nodiscard]] bool tells_speed(PartId other) const {
    return gxp::tells_speed(paths_.host(), routes_.path(gpu_, other));
  }

  [[nodiscard]] std::vector<RankPeer> peers() const {
    std::vector<RankPeer> all;
    const std::vector<PartId>& gpus = seats_.gpus(seat_.host);
    for (int local_rank = 0; local_rank < int(gpus.size()); ++local_rank) {
      const PartId gpu = gpus[size_t(local_rank)];
      if (gpu == gpu_) continue;
      all.push_back({seats_.rank_at({seat_.host, local_rank}), gpu, routes_.find(gpu_, gpu),
                     tells_speed(gpu), routes_.peer_to_peer(gpu_, gpu)});
    }
    return all;
  }

  [[nodiscard]] std::vector<RankNic> nics() const {
    std::vector<RankNic> all;
    for (const PartId port : paths_.ports()) {
      const bool is_own = std::ranges::find(own_ports_, port) != own_ports_.end();
      all.push_back({port, is_own, routes_.find(gpu_, port), tells_speed(port),
                     routes_.gpu_direct(gpu_, port, NcclRoutes::Direction::kSend),
                     routes_.gpu_direct(gpu_, port, NcclRoutes::Direction::kReceive)});
    }
    return all;
  }

  [[nodiscard]] std::vector<RankRail> rails() const {
    size_t most = 0;
    for (size_t host = 0; host < topology_.hosts.size(); ++host) {
      if (host != seat_.host) most = std::max(most, seats_.gpus(host).size());
    }
    std::vector<RankRail> all;
    const std::vector<PartId>& here = seats_.gpus(seat_.host);
    for (size_t local_rank = 0; local_rank < most; ++local_rank) {
      std::vector<PartId> ports = own_ports_;
      if (local_rank < here.size()) ports = routes_.local_ports(here[local_rank]);
      const auto same = std::ranges::find(all, ports, &RankRail::ports);
      if (same == all.end())
        all.push_back({{int64_t(local_rank)}, std::move(ports)});
      else
        same->local_ranks.push_back(int64_t(local_rank));
    }
    return all;
  }

  const Topology& topology_;
  const RankSeats& seats_;
  RankSeats::Seat seat_;
  NcclPaths paths_;
  NcclRoutes routes_;
  PartId gpu_;
  std::vector<PartId> own_ports_;
};

// Clouds' files for NCCL name PCIe devices by their places alone.
bool is_silent_about_devices(const std::shared_ptr<HostTree>& host) {
  return std::ranges::any_of(host->parts(), [](const Part& part) {
    return part.kind == PartKind::kPcieDevice && part.identity.class_code.empty();
  });
}

// On hosts without GPUs, the place of a rank depends on the number of ranks of each host.
RankView view_without_gpu(const Topology& topology, int rank) {
  if (std::ranges::any_of(topology.trees, is_silent_about_devices))
    fail(ErrorKind::kConfig,
         "show rank {} of {}: the file does not mark which PCIe devices are GPUs; on that host, "
         "NCCL_TOPO_DUMP_FILE writes one that does",
         rank, topology.name);
  if (topology.hosts.size() > 1)
    fail(ErrorKind::kUsage,
         "show rank {} of {}: no GPU is known in its {}, so only the launcher decides how many "
         "ranks a host has",
         rank, topology.name, counted(topology.hosts.size(), "host"));
  return {.rank = rank,
          .seat = {0, rank},
          .notes = {"no GPU is known: the launcher decides how many ranks share the host's NUMA "
                    "nodes and NICs"}};
}

class NeighbourFinder {
 public:
  NeighbourFinder(const Topology& topology, const ClusterPlan& plan, const RankSeats& seats,
                  RankSeats::Seat seat)
      : topology_(topology),
        plan_(plan),
        seats_(seats),
        kind_(topology.hosts[seat.host].tree),
        hosts_(int(plan.host_order.size())),
        host_place_(int(std::ranges::find(plan.host_order, seat.host) - plan.host_order.begin())),
        gpu_(seats.place_of(seat)) {}

  [[nodiscard]] RankNeighbours find() const {
    RankNeighbours found;
    for (size_t channel = 0; channel < plan_.rings[kind_].channels.size(); ++channel) {
      add(found.rings, channel, ring_of(channel));
      TreeNeighbours first = tree_of(channel, 0);
      TreeNeighbours second = tree_of(channel, 1);
      const bool is_one = first.parent == second.parent && first.children == second.children;
      if (is_one && hosts_ > 1) first.trees.push_back(1);
      add(found.trees, channel, std::move(first));
      if (!is_one) add(found.trees, channel, std::move(second));
    }
    return found;
  }

 private:
  [[nodiscard]] const RingChannel& channel_here(size_t channel) const {
    return plan_.rings[kind_].channels[channel];
  }
  // The GPUs of a channel in a host, by the host's place in the plan's order.
  [[nodiscard]] const std::vector<int>& gpus_at(size_t channel, int host_place) const {
    const size_t host = plan_.host_order[size_t(host_place)];
    return plan_.rings[topology_.hosts[host].tree].channels[channel].ring.gpus;
  }
  [[nodiscard]] int rank_at(int host_place, int gpu) const {
    return seats_.rank_at(seats_.seat_of_place(plan_.host_order[size_t(host_place)], gpu));
  }
  [[nodiscard]] int head_of(size_t channel, int host_place) const {
    return rank_at(host_place, gpus_at(channel, host_place).front());
  }
  [[nodiscard]] size_t index_in(size_t channel) const {
    const std::vector<int>& gpus = channel_here(channel).ring.gpus;
    return size_t(std::ranges::find(gpus, gpu_) - gpus.begin());
  }
  [[nodiscard]] std::string path_between(int from, int to) const {
    return std::string(to_string(plan_.kinds[kind_].route(from, to).type));
  }

  [[nodiscard]] RingNeighbours ring_of(size_t channel) const {
    const Ring& ring = channel_here(channel).ring;
    const HostRoutes& routes = plan_.kinds[kind_];
    const size_t at = index_in(channel);
    const bool is_first = at == 0 && hosts_ > 1;
    const bool is_last = at + 1 == ring.gpus.size() && hosts_ > 1;
    const int before = ring.gpus[(at + ring.gpus.size() - 1) % ring.gpus.size()];
    const int after = ring.gpus[(at + 1) % ring.gpus.size()];
    const int host_before = (host_place_ + hosts_ - 1) % hosts_;
    const std::string nic = ring.nic < 0 ? "" : routes.name(routes.place_of_nic(ring.nic));
    return {.previous = is_first ? rank_at(host_before, gpus_at(channel, host_before).back())
                                 : rank_at(host_place_, before),
            .next = is_last ? head_of(channel, (host_place_ + 1) % hosts_)
                            : rank_at(host_place_, after),
            .previous_by = is_first ? nic : path_between(before, gpu_),
            .next_by = is_last ? nic : path_between(gpu_, after),
            .gb_per_s = channel_here(channel).gb_per_s};
  }

  [[nodiscard]] TreeNeighbours tree_of(size_t channel, int tree) const {
    const std::vector<int>& chain = channel_here(channel).ring.gpus;
    const size_t at = index_in(channel);
    TreeNeighbours found{.trees = {tree}};
    if (at + 1 < chain.size()) found.children.push_back(rank_at(host_place_, chain[at + 1]));
    if (at > 0) {
      found.parent = rank_at(host_place_, chain[at - 1]);
      return found;
    }
    const DoubleBinaryTree trees(hosts_);
    if (host_place_ > 0) found.parent = head_of(channel, trees.parent(tree, host_place_));
    for (const int child : trees.children(tree, host_place_)) {
      if (child > 0) found.children.push_back(head_of(channel, child));
    }
    return found;
  }

  static bool are_same(const RingNeighbours& a, const RingNeighbours& b) {
    return a.previous == b.previous && a.next == b.next && a.previous_by == b.previous_by &&
           a.next_by == b.next_by;
  }
  static bool are_same(const TreeNeighbours& a, const TreeNeighbours& b) {
    return a.trees == b.trees && a.parent == b.parent && a.children == b.children;
  }
  static void count_in(RingNeighbours& all, const RingNeighbours& one) {
    all.gb_per_s += one.gb_per_s;
  }
  static void count_in(TreeNeighbours&, const TreeNeighbours&) {}

  template <class Neighbours>
  static void add(std::vector<Neighbours>& all, size_t channel, Neighbours one) {
    const auto same =
        std::ranges::find_if(all, [&](const auto& row) { return are_same(row, one); });
    if (same == all.end()) {
      one.channels = {int64_t(channel)};
      all.push_back(std::move(one));
      return;
    }
    same->channels.push_back(int64_t(channel));
    count_in(*same, one);
  }

  const Topology& topology_;
  const ClusterPlan& plan_;
  const RankSeats& seats_;
  size_t kind_;
  int hosts_;
  int host_place_;
  int gpu_;  // its place in the plan
};

}  // namespace

RankView view_rank(const Topology& topology, int rank) {
  const RankSeats seats(topology);
  if (seats.ranks() == 0) return view_without_gpu(topology, rank);
  return Viewer(topology, seats, seats.find(rank)).view();
}

RankNeighbours find_neighbours(const Topology& topology, const RankSeats& seats,
                               RankSeats::Seat seat) {
  if (seats.ranks() == 1) return {.notes = {"as the only rank it has no neighbours"}};
  try {
    const ClusterPlan plan = plan_cluster(topology);
    RankNeighbours found = NeighbourFinder(topology, plan, seats, seat).find();
    if (!std::ranges::is_sorted(plan.host_order))
      found.notes.emplace_back(
          "rings and trees use a host order that is closer in the network than the topology's; gxp "
          "topo plan --format hostfile writes it");
    return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return {.notes = {std::string("no rings and trees: ") + error.what()}};
  }
}

}  // namespace gxp
