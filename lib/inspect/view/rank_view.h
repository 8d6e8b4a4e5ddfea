// What one rank of a job has, and how it reaches the others: its GPU, the processors, memory and
// NICs near it, the other GPUs of its host, other hosts, its neighbours in rings and trees.
#pragma once

#include <string>
#include <vector>

#include "lib/inspect/view/rank_neighbours.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

struct RankPeer {  // another GPU of the host
  int rank = 0;
  PartId gpu = kNoPart;
  NcclRoute route{};
  RouteVerdict peer_to_peer{};
};

struct RankNic {
  PartId port = kNoPart;
  bool is_own = false;             // NCCL gives it to the rank's GPU
  NcclRoute route{};               // by which the rank sends
  RouteVerdict send{}, receive{};  // GPUDirect RDMA
};

// To these local ranks of other hosts NCCL sends by these ports: those of the GPU here that has the
// same local rank; where there is none, the rank's own. Source: NCCL 2.30, ncclTopoGetNetDev.
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

// Where no host has a GPU, of a topology of one host only.
//   Errors  kUsage: there is no such rank, or it cannot be known where it is. kConfig: the source
//           does not say what is a GPU; as RankSeats.
//   Cost    that of plan_cluster().
RankView view_rank(const Topology& topology, int rank);

}  // namespace gxp
