#include "lib/tools/topology/view/device_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/base/text/joined.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

// A port lies where its NIC lies.
PartId pcie_part(const HostTree& host, PartId part) {
  const PartId nic = host.find_above(part, PartKind::kNic);
  return nic == kNoPart ? part : nic;
}

std::vector<PartId> chain_of(const HostTree& host, PartId part) {
  std::vector<PartId> chain;
  for (PartId id = pcie_part(host, part); id != kNoPart; id = host[id].above) chain.push_back(id);
  return chain;
}

int bridges_below(const HostTree& host, const std::vector<PartId>& chain, PartId top) {
  return int(std::count_if(chain.begin(), std::ranges::find(chain, top),
                           [&](PartId part) { return host[part].kind == PartKind::kPcieSwitch; }));
}

bool has_host_bridge(const HostTree& host, const std::vector<PartId>& chain) {
  return std::ranges::any_of(chain,
                             [&](PartId part) { return host[part].kind == PartKind::kHostBridge; });
}

// Functions of one device, or ports of one NIC.
bool are_one_device(const Part& a, const Part& b) {
  const size_t function = a.bus_id.rfind('.');
  return function != std::string::npos &&
         a.bus_id.compare(0, function + 1, b.bus_id, 0, function + 1) == 0;
}

std::string pcie_cell(const HostTree& host, PartId a, PartId b) {
  const std::vector<PartId> from = chain_of(host, a);
  const std::vector<PartId> to = chain_of(host, b);
  const auto meeting = std::ranges::find_first_of(from, to);
  if (are_one_device(host[from.front()], host[to.front()])) return "PIX";
  if (meeting == from.end()) return "SYS";
  switch (host[*meeting].kind) {
    case PartKind::kPcieSwitch: {
      const int bridges =
          1 + bridges_below(host, from, *meeting) + bridges_below(host, to, *meeting);
      return bridges == 1 ? "PIX" : "PXB";
    }
    case PartKind::kNumaNode:
      return has_host_bridge(host, from) && has_host_bridge(host, to) ? "NODE" : "PHB";
    default:
      return "PHB";
  }
}

// NVLinks: between two GPUs, and of each to NVSwitches.
class NvLinks {
 public:
  explicit NvLinks(const HostTree& host) {
    for (const CrossLink& link : host.cross_links()) {
      if (link.kind != CrossLinkKind::kNvLink && link.kind != CrossLinkKind::kXgmi) continue;
      const bool to_gpu = link.to != kNoPart && host[link.to].kind == PartKind::kGpu;
      if (to_gpu && link.to != link.from) direct_[{link.from, link.to}] += link.count;
      if (leads_to_nvswitch(host, link)) switched_[link.from] += link.count;
    }
  }

  [[nodiscard]] int between(PartId a, PartId b) const {
    const auto count = [](const auto& map, const auto& key) {
      const auto found = map.find(key);
      return found == map.end() ? 0 : found->second;
    };
    return std::max(count(direct_, std::pair(a, b)), count(direct_, std::pair(b, a))) +
           std::min(count(switched_, a), count(switched_, b));
  }

 private:
  std::map<std::pair<PartId, PartId>, int> direct_;
  std::map<PartId, int> switched_;
};

DeviceMatrix devices_of(const HostTree& host) {
  DeviceMatrix matrix;
  matrix.gpus = host.all_of(PartKind::kGpu);
  sort_by_number(host, matrix.gpus);
  std::vector<PartId> nics = host.all_of(PartKind::kPort);
  if (nics.empty()) nics = host.all_of(PartKind::kNic);
  std::ranges::copy_if(nics, std::back_inserter(matrix.nics),
                       [&](PartId nic) { return is_on_pcie(host, pcie_part(host, nic)); });
  sort_by_number(host, matrix.nics);
  return matrix;
}

template <class CellOf>
void fill(DeviceMatrix& matrix, const CellOf& cell_of) {
  for (const PartId row : matrix.devices()) {
    std::vector<std::string>& cells = matrix.cells.emplace_back();
    for (const PartId column : matrix.devices())
      cells.push_back(row == column ? "X" : cell_of(row, column));
  }
}

bool is_same(const std::string& smi, const std::string& nccl) {
  return smi == nccl || (smi.starts_with("NV") && nccl == "NVL");
}

std::string why_used(PartId from, PartId to, const NcclPaths& paths, const NcclRoutes& routes) {
  const HostTree& host = paths.host();
  const NcclRoute route = routes.find(from, to);
  if (route.type == PathType::kP2c)
    return "PCIe to the processor, from there the chip-to-chip link of the GPU";
  const bool both_gpus = host[from].kind == PartKind::kGpu && host[to].kind == PartKind::kGpu;
  if (both_gpus) return "no peer-to-peer: " + routes.peer_to_peer(from, to).rule;
  const bool sends = host[from].kind == PartKind::kGpu;
  if (route.type == PathType::kPxn)
    return "NCCL sends through the GPU nearest to the NIC (PXN), over NVLink";
  const RouteVerdict verdict =
      routes.gpu_direct(sends ? from : to, sends ? to : from, NcclRoutes::Direction::kReceive);
  return "no GPUDirect RDMA: " + verdict.rule;
}

std::string why_wired(const std::string& smi, const NcclPath& path) {
  switch (path.type) {
    case PathType::kDis:
      return "NCCL leaves one of them out of its graph, or has no path";
    case PathType::kLoc:
      return "ports of one NIC are one device to NCCL";
    case PathType::kNvb:
      return "NCCL lets one other GPU relay NVLink";
    case PathType::kC2c:
      return "a chip-to-chip link is nearer than PCIe";
    case PathType::kPix:
    case PathType::kPxb:
      return smi == "PXB" ? "NCCL takes the two levels of a Broadcom switch as one"
                          : "a link between bridges (pcilink) is nearer";
    case PathType::kPhb:
      return smi == "NODE" ? "NCCL has no NODE: what is below one NUMA node is PHB"
                           : "NCCL's path goes through a NUMA node";
    default:
      break;
  }
  return fmt::format(
      "NCCL's nearest path has {} hops at {:g} "
      "GB/s",
      path.hops.size(), path.gb_per_s);
}

constexpr size_t kCellsShown = 8;

constexpr std::string_view kSmiLegend =
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., "
    "QPI/UPI)\n"
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
    "within a NUMA node\n"
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
    "Bridge)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n";

constexpr std::string_view kPeerLegend =
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  OK   = Status Ok\n"
    "  CNS  = Chipset not supported\n"
    "  GNS  = GPU not supported\n"
    "  TNS  = Topology not supported\n"
    "  NS   = Not supported\n"
    "  DR   = Disabled by regkey\n"
    "  U    = Unknown\n";

constexpr std::string_view kNcclLegend =
    "\nLegend, nearest first:\n\n"
    "  X    = the device itself\n"
    "  LOC  = the same device: ports of one NIC\n"
    "  NVL  = NVLink or xGMI, also through NVSwitches\n"
    "  NVB  = NVLink through one other GPU\n"
    "  C2C  = a chip-to-chip link\n"
    "  PIX  = one PCIe switch\n"
    "  PXB  = several PCIe switches\n"
    "  P2C  = PCIe and a chip-to-chip link\n"
    "  PXN  = NVLink to the GPU beside the NIC, then PCIe\n"
    "  PHB  = through a NUMA node\n"
    "  SYS  = from one NUMA node to another\n"
    "  DIS  = NCCL has no path\n";

// "GPU0", "NIC3": by the source's numbers where it tells them, else counted as nvidia-smi does.
std::vector<std::string> short_names(const HostTree& host, const DeviceMatrix& matrix) {
  std::vector<std::string> names;
  for (const int number : numbers_of(host, matrix.gpus))
    names.push_back(fmt::format("GPU{}", number));
  for (const int number : numbers_of(host, matrix.nics))
    names.push_back(fmt::format("NIC{}", number));
  return names;
}

std::string affinity_columns(const HostTree& host, PartId gpu) {
  const PartId node = host.find_above(gpu, PartKind::kNumaNode);
  if (node == kNoPart) return "\t\t\tN/A";
  const auto& number = info_of<NumaNodeInfo>(host[node]).number;
  const auto& info = info_of<GpuInfo>(host[gpu]);
  const std::string nodes = number ? std::to_string(*number) : "";
  return fmt::format("\t{}\t{}\t\t{}", cpus_of(host[node]).to_list(),
                     info.near_nodes.empty() ? nodes : info.near_nodes,
                     info.memory_node.empty() ? "N/A" : info.memory_node);
}

}  // namespace

std::vector<PartId> DeviceMatrix::devices() const {
  std::vector<PartId> all = gpus;
  all.insert(all.end(), nics.begin(), nics.end());
  return all;
}

DeviceMatrix smi_matrix(const HostTree& host) {
  DeviceMatrix matrix = devices_of(host);
  const NvLinks nvlinks(host);
  if (!host.places_known) {
    fill(matrix, [&](PartId row, PartId column) {
      const auto told = host.peer_states.find({row, column});
      return told == host.peer_states.end() ? std::string("U") : told->second;
    });
    return matrix;
  }
  fill(matrix, [&](PartId row, PartId column) {
    const int count = nvlinks.between(row, column);
    return count > 0 ? fmt::format("NV{}", count) : pcie_cell(host, row, column);
  });
  if (host.all_of(PartKind::kHostBridge).empty())
    matrix.notes.push_back(
        "the source names no PCIe host bridges: where nvidia-smi says NODE, this matrix says PHB");
  return matrix;
}

DeviceMatrix nccl_matrix(const NcclPaths& paths, const NcclRoutes& routes, NcclView view) {
  DeviceMatrix matrix = devices_of(paths.host());
  fill(matrix, [&](PartId row, PartId column) {
    const PathType type =
        view == NcclView::kUsed ? routes.find(row, column).type : paths.distance(row, column).type;
    return std::string(to_string(type));
  });
  matrix.notes = paths.graph().notes;
  return matrix;
}

std::vector<MatrixDifference> compare(const DeviceMatrix& smi, const DeviceMatrix& nccl,
                                      const NcclPaths& paths, const NcclRoutes& routes) {
  std::map<std::tuple<std::string, std::string, std::string>, size_t> places;
  std::vector<MatrixDifference> differences;
  const std::vector<PartId> devices = smi.devices();
  for (size_t row = 0; row < devices.size(); ++row) {
    for (size_t column = 0; column < devices.size(); ++column) {
      const std::string& theirs = smi.cells[row][column];
      const std::string& ours = nccl.cells[row][column];
      if (is_same(theirs, ours)) continue;
      const NcclPath path = paths.find(devices[row], devices[column]);
      const std::string why = ours == to_string(path.type)
                                  ? why_wired(theirs, path)
                                  : why_used(devices[row], devices[column], paths, routes);
      const auto [place, is_new] = places.try_emplace({theirs, ours, why}, differences.size());
      if (is_new) differences.push_back({theirs, ours, why, {}});
      differences[place->second].cells.emplace_back(devices[row], devices[column]);
    }
  }
  return differences;
}

std::string_view smi_legend(const HostTree& host) {
  return host.places_known ? kSmiLegend : kPeerLegend;
}
std::string_view nccl_legend() { return kNcclLegend; }

std::string matrix_text(const HostTree& host, const DeviceMatrix& matrix, std::string_view legend) {
  const std::vector<std::string> names = short_names(host, matrix);
  std::string text =
      fmt::format("\t{}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n", joined(names, "\t"));
  for (size_t row = 0; row < names.size(); ++row) {
    text += names[row];
    for (const std::string& cell : matrix.cells[row]) text += cell == "X" ? "\t X " : "\t" + cell;
    text += row < matrix.gpus.size() ? affinity_columns(host, matrix.gpus[row]) : "\t\t\t\t";
    text += '\n';
  }
  text += legend;
  if (matrix.nics.empty()) return text;
  const std::vector<std::string> parts = names_of_parts(host);
  text += "\nNIC Legend:\n\n";
  for (size_t i = 0; i < matrix.nics.size(); ++i)
    text += fmt::format("  {}: {}\n", names[matrix.gpus.size() + i], parts[matrix.nics[i]]);
  return text;
}

std::string cells_text(const HostTree& host, const DeviceMatrix& matrix,
                       const MatrixDifference& difference) {
  const std::vector<std::string> names = short_names(host, matrix);
  const std::vector<PartId> devices = matrix.devices();
  const auto name = [&](PartId part) {
    return names[size_t(std::ranges::find(devices, part) - devices.begin())];
  };
  std::string text;
  for (size_t i = 0; i < difference.cells.size() && i < kCellsShown; ++i)
    text += fmt::format("{}{}-{}", i == 0 ? "" : ", ", name(difference.cells[i].first),
                        name(difference.cells[i].second));
  if (difference.cells.size() > kCellsShown)
    text += fmt::format(" and {} more", difference.cells.size() - kCellsShown);
  return text;
}

}  // namespace gxp
