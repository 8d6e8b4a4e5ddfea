// Paths between the devices of a host as NCCL finds them: type, bandwidth and links.
//
// A breadth-first search starts at every device and NUMA node of NCCL's graph (nccl_graph.h). A
// path replaces another if its type is nearer, or if the types are equal and it is wider, or if
// both are equal and it is shorter. A path has the type of its farthest link: PIX for a PCIe link,
// PXB for one between two bridges, PHB for one at a NUMA node; NVB where a second NVLink follows
// the first at a GPU, since GPUs forward no farther. These paths follow the wiring alone;
// nccl_routes.h says where NCCL sends data otherwise.
//   Source  NCCL 2.30.7, src/graph/paths.cc. RCCL's search differs: GPUs never forward.
//   Limits  kMaxEnds, else kConfig.
//   Cost    ends x links; 1 ms for a host with 16 GPUs.
#pragma once

#include <string>
#include <vector>

#include "lib/topo/nccl/nccl_graph.h"

namespace gxp {

struct PathHop {
  PartId from = kNoPart;  // kNoPart: the NVSwitches
  PartId to = kNoPart;
  LinkKind kind = LinkKind::kPcie;
  double gb_per_s = 0;           // as NCCL models it
  double physical_gb_per_s = 0;  // 0: unknown
};

struct NcclPath {
  PathType type = PathType::kDis;
  double gb_per_s = 0;  // that of its narrowest hop
  std::vector<PathHop> hops{};
  [[nodiscard]] int limiting_hop() const;          // the first of the narrowest; -1: no hop
  [[nodiscard]] double physical_gb_per_s() const;  // 0: it is unknown for some hop
};

class NcclPaths {
 public:
  static constexpr size_t kMaxEnds = 1024;

  // `host` must outlive it.
  explicit NcclPaths(const HostTree& host);

  [[nodiscard]] const HostTree& host() const { return *host_; }
  [[nodiscard]] const NcclGraph& graph() const { return graph_; }
  // In NCCL's order.
  [[nodiscard]] const std::vector<PartId>& gpus() const { return gpus_; }
  // NCCL's nets: ports, and NICs without a known port.
  [[nodiscard]] const std::vector<PartId>& ports() const { return ports_; }
  [[nodiscard]] const std::vector<PartId>& numa_nodes() const { return numa_nodes_; }
  [[nodiscard]] std::vector<PartId> devices() const;  // GPUs, then ports

  // The path between two devices or NUMA nodes; kDis if a part is neither.
  [[nodiscard]] NcclPath find(PartId from, PartId to) const;
  // What find() returns, without the hops.
  struct Distance {
    PathType type = PathType::kDis;
    double gb_per_s = 0;
    int hops = 0;
  };
  [[nodiscard]] Distance distance(PartId from, PartId to) const;

 private:
  static constexpr uint32_t kNoStep = ~uint32_t{0};
  // Paths are stored as chains of steps towards their ends; paths with the same tail share it.
  struct Step {
    PathHop hop;
    uint32_t next = kNoStep;
  };
  struct Found {
    Distance distance;
    uint32_t first_step = kNoStep;
  };

  void search(PartId base);
  [[nodiscard]] uint32_t end_of(PartId part) const;
  [[nodiscard]] const Found* found(PartId from, PartId to) const;

  const HostTree* host_;
  NcclGraph graph_;
  std::vector<PartId> gpus_, ports_, numa_nodes_;
  std::vector<uint32_t> ends_;  // by part: its index among all ends
  std::vector<NcclNodeId> end_nodes_;
  std::vector<Found> found_;  // [to][from]
  std::vector<Step> steps_;
};

}  // namespace gxp
