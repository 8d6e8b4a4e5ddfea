// The devices of one rank of a job, and its paths to the others: its GPU, the processors, memory
// and NICs near it, the other GPUs of its host, other hosts, its neighbours in rings and trees.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/report/report.h"
#include "lib/tools/topology/rings/rank_seats.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

// The neighbours of a rank in the planned rings and trees (lib/tools/topology/rings/cluster_plan.h).
struct RingNeighbours {
  std::vector<int64_t> channels{};  // that have the same
  int previous = 0;
  int next = 0;
  std::string previous_by{}, next_by{};  // a path type, or this host's NIC to and from another host
  double gb_per_s = 0;                   // of all these channels
};

// Trees of several hosts are two, each with half of a channel's data; one host has a chain.
struct TreeNeighbours {
  std::vector<int64_t> channels{};  // that have the same
  std::vector<int64_t> trees{};     // likewise
  std::optional<int> parent{};      // none: it is the root
  std::vector<int64_t> children{};
};

struct RankNeighbours {
  std::vector<RingNeighbours> rings{};
  std::vector<TreeNeighbours> trees{};
  std::vector<std::string> notes{};  // why there are no neighbours, or what the plan changes
};

// Precondition: a seat of `seats`, which are those of `topology`.
//   Cost  that of plan_cluster().
RankNeighbours find_neighbours(const Topology& topology, const RankSeats& seats,
                               RankSeats::Seat seat);

struct RankPeer {  // another GPU of the host
  int rank = 0;
  PartId gpu = kNoPart;
  NcclRoute route{};
  bool tells_speed = true;  // false: the source has none for the route
  RouteVerdict peer_to_peer{};
};

struct RankNic {
  PartId port = kNoPart;
  bool is_own = false;             // NCCL gives it to the rank's GPU
  NcclRoute route{};               // by which the rank sends
  bool tells_speed = true;         // as above
  RouteVerdict send{}, receive{};  // GPUDirect RDMA
};

// NCCL sends to these local ranks of other hosts by these ports: those of the GPU of this host that
// has the same local rank, or the rank's own if there is none. Source: NCCL 2.30,
// ncclTopoGetNetDev.
struct RankRail {
  std::vector<int64_t> local_ranks{};
  std::vector<PartId> ports{};
};

struct RankView {
  int rank = 0;
  int ranks = 0;  // of the topology; 0: no GPU, so it does not say
  RankSeats::Seat seat{};
  PartId gpu = kNoPart;  // none: a process on the host's processors
  std::vector<RankPeer> peers{};
  std::vector<RankNic> nics{};
  std::vector<RankRail> rails{};  // of several hosts
  RankNeighbours neighbours{};
  std::vector<std::string> notes{};
};

// Without GPUs, the topology must have one host.
//   Errors  kUsage: there is no such rank, or it cannot be known where it is. kConfig: the source
//           does not say what is a GPU; as RankSeats.
//   Cost    that of plan_cluster().
RankView view_rank(const Topology& topology, int rank);

// Facts: rank, ranks, host, host_index, local_rank, gpu, bus_id, model, numa_node, cpus, nics
// (those that NCCL gives it). gpus[] of {rank, gpu, type, bandwidth_gb_s, via, peer_to_peer,
// because}, nics[] likewise, other_hosts[], rings[] and trees[] of its neighbours, notes[]. Without
// a GPU, numa_nodes[] of the host. Facts that are unknown or do not apply are left out, or null.
Report rank_report(const Topology& topology, const RankView& view);

}  // namespace gxp
