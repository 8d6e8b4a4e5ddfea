// A device matrix as text.
#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text/joined.h"
#include "lib/tools/topology/view/device_matrix.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

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
  return fmt::format("\t{}\t{}\t\tN/A", cpus_of(host[node]).to_list(),
                     number ? std::to_string(*number) : "");
}

}  // namespace

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
