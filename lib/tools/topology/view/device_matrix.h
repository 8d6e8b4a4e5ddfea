// The distance between any two GPUs and NICs of a host, as a matrix: in nvidia-smi's words and in
// NCCL's, and the cells where the two differ, with the reasons.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {

struct DeviceMatrix {
  std::vector<PartId> gpus;
  std::vector<PartId> nics;                     // ports, and NICs of which no port is known
  std::vector<std::vector<std::string>> cells;  // "NV18", "PIX", "X"; rows and columns: GPUs first
  std::vector<std::string> notes;               // missing facts, a sentence each

  [[nodiscard]] std::vector<PartId> devices() const;
};

// As in `nvidia-smi topo -m`: NV# (the NVLinks between the two, or the lower number of their links
// to NVSwitches), PIX, PXB, PHB, NODE, SYS. GPUs and NICs are in the order of their numbers; NICs
// without a PCIe device are left out. If the source does not describe how GPUs are connected
// (HostTree::places_known), the cells are its peer states, as in `nvidia-smi topo -p2p`. Source:
// nvidia-smi's legend.
DeviceMatrix smi_matrix(const HostTree& host);
// NCCL's path types between the same devices, by the wiring (kWired) or by the used routes (kUsed);
// DIS for devices that it ignores.
enum class NcclView { kWired, kUsed };
DeviceMatrix nccl_matrix(const NcclPaths& paths, const NcclRoutes& routes, NcclView view);

// Cells that differ for one reason, from row to column.
struct MatrixDifference {
  std::string smi, nccl;
  std::string why;
  std::vector<std::pair<PartId, PartId>> cells;
};
// `nccl` is of the same host as `smi`.
std::vector<MatrixDifference> compare(const DeviceMatrix& smi, const DeviceMatrix& nccl,
                                      const NcclPaths& paths, const NcclRoutes& routes);

// As `nvidia-smi topo -m` prints it, for programs that read that: tabs between columns, affinities
// behind the GPUs' rows, a legend, the NICs' names.
std::string matrix_text(const HostTree& host, const DeviceMatrix& matrix, std::string_view legend);
// The legends of smi_matrix() and of nccl_matrix().
std::string_view smi_legend(const HostTree& host);
std::string_view nccl_legend();
// "GPU0-NIC0, GPU0-NIC1 and 12 more"
std::string cells_text(const HostTree& host, const DeviceMatrix& matrix,
                       const MatrixDifference& difference);

}  // namespace gxp
