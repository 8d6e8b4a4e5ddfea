#include "lib/tools/topology/view/rank_view.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/view/part_words.h"
#include "lib/topo/model/host_tree.h"

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
  [[nodiscard]] std::vector<RankPeer> peers() const {
    std::vector<RankPeer> all;
    const std::vector<PartId>& gpus = seats_.gpus(seat_.host);
    for (int local_rank = 0; local_rank < int(gpus.size()); ++local_rank) {
      const PartId gpu = gpus[size_t(local_rank)];
      if (gpu == gpu_) continue;
      all.push_back({seats_.rank_at({seat_.host, local_rank}), gpu, routes_.find(gpu_, gpu),
                     routes_.peer_to_peer(gpu_, gpu)});
    }
    return all;
  }

  [[nodiscard]] std::vector<RankNic> nics() const {
    std::vector<RankNic> all;
    for (const PartId port : paths_.ports()) {
      const bool is_own = std::ranges::find(own_ports_, port) != own_ports_.end();
      all.push_back({port, is_own, routes_.find(gpu_, port),
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

}  // namespace

RankView view_rank(const Topology& topology, int rank) {
  const RankSeats seats(topology);
  if (seats.ranks() == 0) return view_without_gpu(topology, rank);
  return Viewer(topology, seats, seats.find(rank)).view();
}

}  // namespace gxp
