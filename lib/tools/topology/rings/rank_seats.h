// Which rank sits on which GPU, as torchrun and its like place one process a GPU: rank by rank over
// the hosts in the topology's order, within a host by local rank.
//
// Local ranks follow the ranks that the source gives to the GPUs, if each GPU has one of its own;
// else the GPUs' numbers, else the tree. In a topology of one host the source's ranks are the ranks
// themselves, since the dump may be from any host of a job. GPUs that NCCL leaves out have no rank.
#pragma once

#include <vector>

#include "lib/topo/model/part_id.h"

namespace gxp {

class HostTree;
struct ClusterPlan;
struct PlanFile;
struct Topology;

// The plan of a topology for ranks that use all of it, one a GPU: what comm.topology reads.
// Precondition: the plan is that of the topology. The k-th rank of a host is its local rank k; of a
// topology that does not describe the inside of its hosts, only their order.
PlanFile plan_of_seats(const Topology& topology, const ClusterPlan& plan);

class RankSeats {
 public:
  struct Seat {
    size_t host = 0;  // index into Topology::hosts
    int local_rank = 0;
  };

  // kConfig: there is no host, or it is not known what is in one.
  explicit RankSeats(const Topology& topology);

  [[nodiscard]] int ranks() const { return first_.back(); }  // 0: no host has a GPU
  [[nodiscard]] Seat find(int rank) const;                   // kUsage: there is no such rank
  [[nodiscard]] int rank_at(Seat seat) const;
  // The GPUs of a host by local rank, and by the places that a plan has for them.
  [[nodiscard]] const std::vector<PartId>& gpus(size_t host) const;
  [[nodiscard]] int place_of(Seat seat) const;
  [[nodiscard]] Seat seat_of_place(size_t host, int place) const;

 private:
  struct Kind {
    std::vector<PartId> gpus{};  // by local rank
    std::vector<int> place{};    // likewise
    std::vector<int> said{};     // by local rank, the ranks that the source gives
  };
  static Kind read_kind(const HostTree& host);
  [[nodiscard]] const Kind& kind_of(size_t host) const;

  const Topology* topology_;
  std::vector<Kind> kinds_{};  // of Topology::trees
  std::vector<int> first_{0};  // of each host: the number of ranks before it; at the end the total
};

}  // namespace gxp
