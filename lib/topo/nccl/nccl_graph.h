// The graph that NCCL builds of a host before it searches paths: its nodes and links.
//   Nodes   NUMA nodes, bridges, GPUs, NICs, their ports, and all NVSwitches as one. Where some
//           GPUs have a rank, those without are left out; likewise ports without a number where
//           some have one. NICs without a PCIe device are one below each NUMA node.
//   Links   directed, those of a node by falling bandwidth, the one up the PCIe tree last; several
//           of one kind between two nodes are one. The lower bridges of a two-level Broadcom
//           switch are taken out, their devices joined to the upper one.
//   Source  NCCL 2.30.7, src/graph/topo.cc. Links of AMD's xGMI are taken as NVLinks, as RCCL does.
#pragma once

#include <string>
#include <vector>

#include "lib/topo/model/graph.h"
#include "lib/topo/model/part_id.h"
#include "lib/topo/model/path_type.h"

namespace gxp {

class HostTree;

enum class NcclNodeKind : uint8_t { kGpu, kPcie, kNvSwitch, kCpu, kNic, kPort };

using NcclNodeId = uint32_t;  // index into NcclGraph::nodes
inline constexpr NcclNodeId kNoNcclNode = ~NcclNodeId{0};

struct NcclLink {
  NcclNodeId to = 0;
  PathType type = PathType::kPix;  // of a path of this link alone
  LinkKind kind = LinkKind::kPcie;
  double gb_per_s = 0;           // as NCCL models it
  double physical_gb_per_s = 0;  // 0: unknown
};

struct NcclNode {
  NcclNodeKind kind = NcclNodeKind::kPcie;
  PartId part = kNoPart;  // none: the NVSwitches
  std::vector<NcclLink> links{};
};

struct NcclGraph {
  std::vector<NcclNode> nodes;
  std::vector<NcclNodeId> node_of;  // by part; kNoNcclNode: it is left out or inside another node
  std::vector<std::string> notes;   // on parts that NCCL leaves out or stops at: a sentence each
  [[nodiscard]] std::vector<NcclNodeId> all_of(NcclNodeKind kind) const;  // in the tree's order
};

NcclGraph make_nccl_graph(const HostTree& host);

}  // namespace gxp
