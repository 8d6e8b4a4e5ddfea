// The route that NCCL takes between two devices, and the rule that decides it: peer-to-peer or
// through host memory, with GPUDirect RDMA or without, through another GPU (PXN).
//
// Routes are the paths by the wiring (nccl_paths.h), but for those that NCCL changes:
//   GPU-GPU  without peer-to-peer through the NUMA node nearest to the second GPU.
//   GPU-NIC  P2C where PCIe and a chip-to-chip link meet and the NIC is the GPU's nearest; from a
//            GPU to a NIC through the GPU that is nearest to the NIC (PXN) if NVLink leads there
//            and it is faster, or avoids the processor; without GPUDirect RDMA through the NUMA
//            node nearest to the GPU.
//   Source   NCCL 2.30.7, src/graph/paths.cc, topo.cc; where the host's GPUs are AMD's, RCCL 2.21.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/gpu_direct.h"
#include "lib/topo/nccl/nccl_paths.h"

namespace gxp {

struct NcclSettings {
  std::optional<PathType> p2p_level{};  // NCCL_P2P_LEVEL
  bool p2p_disable = false;             // NCCL_P2P_DISABLE
  std::optional<PathType> gdr_level{};  // NCCL_NET_GDR_LEVEL
  std::optional<bool> gdr_read{};       // NCCL_NET_GDR_READ
  bool gdr_c2c = true;                  // NCCL_NET_GDR_C2C
  bool pxn_disable = false;             // NCCL_PXN_DISABLE
  bool pxn_c2c = true;                  // NCCL_PXN_C2C
};

// A level as in NCCL's variables: "PHB", or an older digit, "3". Nothing if it is something else.
std::optional<PathType> parse_nccl_level(std::string_view text);

// Sets what NCCL's variable of this name sets. kUsage: the variable is none of those above, or the
// value is none of its values.
void set_nccl_variable(NcclSettings& settings, std::string_view name, std::string_view value);

// kUnknown: the rule says what is missing to decide, and NCCL is taken to use the route.
enum class RouteAnswer : uint8_t { kNo, kYes, kUnknown };
std::string_view to_string(RouteAnswer answer);  // "yes"

struct RouteVerdict {
  RouteAnswer answer = RouteAnswer::kUnknown;
  std::string rule;  // what decided it: "PHB is beyond PXB, NCCL's limit ..."
};

// What the driver reports about peer access; by default what the source has of it
// (HostTree::peer_states).
enum class NvmlP2p : uint8_t { kUnknown, kOk, kDisabled };

struct NcclRoute {
  PathType type = PathType::kDis;
  double gb_per_s = 0;
  PartId via = kNoPart;  // the NUMA node or GPU that it leads through; none: the path as wired
};

class NcclRoutes {
 public:
  // `paths` must outlive it.
  explicit NcclRoutes(const NcclPaths& paths, const NcclSettings& settings = {});

  [[nodiscard]] const NcclPaths& paths() const { return *paths_; }
  // From a GPU to a GPU or port, or back; between other parts the path as wired.
  [[nodiscard]] NcclRoute find(PartId from, PartId to) const;
  // The hops of find().
  [[nodiscard]] NcclPath path(PartId from, PartId to) const;

  [[nodiscard]] RouteVerdict peer_to_peer(PartId gpu, PartId other) const;
  [[nodiscard]] RouteVerdict peer_to_peer(PartId gpu, PartId other, NvmlP2p nvml) const;
  // A NIC that receives writes into the GPU's memory; one that sends reads from it.
  enum class Direction : uint8_t { kReceive, kSend };
  [[nodiscard]] RouteVerdict gpu_direct(PartId gpu, PartId port, Direction direction) const;
  // What the host's files say of it, with what keeps this GPU and port from it.
  [[nodiscard]] GpuDirectFacts gpu_direct_facts(PartId gpu, PartId port) const;
  // The ports that NCCL gives a GPU, for its channels in turn: the nearest by find(), shared out
  // among the GPUs that are as near.
  [[nodiscard]] std::vector<PartId> local_ports(PartId gpu) const;
  // Whether NCCL must flush what a NIC wrote into the GPU before it is read.
  [[nodiscard]] RouteVerdict needs_flush(PartId gpu, PartId port) const;

 private:
  void divert_without_peer_to_peer();
  void mark_chip_to_chip();
  void route_nics();
  void try_relay(PartId gpu, PartId port);
  void divert_without_gpu_direct(PartId gpu, PartId port);
  [[nodiscard]] PathType p2p_level() const;
  [[nodiscard]] std::string p2p_level_source() const;
  [[nodiscard]] RouteVerdict may_read(PartId gpu) const;
  [[nodiscard]] RouteVerdict within_gdr_level(PartId gpu, PartId port) const;
  [[nodiscard]] RouteVerdict by_files(PartId gpu, PartId port) const;
  [[nodiscard]] PartId local_cpu(PartId gpu) const;
  [[nodiscard]] std::vector<PartId> nearest(PartId from, const std::vector<PartId>& to) const;
  [[nodiscard]] PartId local_gpu(PartId port) const;
  [[nodiscard]] NcclRoute through(PartId from, PartId via, PartId to) const;
  [[nodiscard]] size_t slot(PartId from, PartId to) const;
  [[nodiscard]] const std::string& name(PartId part) const { return names_[part]; }

  const NcclPaths* paths_;
  NcclSettings settings_;
  std::vector<std::string> names_;
  bool is_amd_ = false;      // the GPUs: RCCL's rules
  std::vector<size_t> row_;  // by part, of GPUs and ports
  size_t rows_ = 0;
  std::vector<NcclRoute> routes_;  // [from][to]
};

}  // namespace gxp
