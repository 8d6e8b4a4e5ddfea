// Steps of reading hwloc's XML; hwloc_xml.h is the way in.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/cpu_set.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/pci_tree.h"

namespace gxp {

using XmlNodes = std::vector<pugi::xml_node>;

std::string_view type_of(const pugi::xml_node& object);
// "" if it has no such <info>.
std::string info_of(const pugi::xml_node& object, std::string_view name);

// The number that all of `text` is, from 0 to 2^20; none: it is something else.
std::optional<int> parse_small_number(std::string_view text);

struct HwlocHost {
  const XmlText& xml;
  int version = 2;  // of the format
  HostTree tree{};
  // Parts by the indexes that matrices use: "OSDev:332".
  std::map<std::string, PartId> by_index{};
};

// A NUMA node of the tree and its CPUs.
struct HwlocNode {
  PartId part = kNoPart;
  CpuSet cpus{};
};

// A PCIe device, interface or bridge right below an object with CPUs, and the nearest NUMA node.
struct HwlocDevice {
  pugi::xml_node object{};
  PartId node = kNoPart;
};
// Adds the devices with all below them; for PCIe speeds that no link has, a note each.
void add_hwloc_devices(HwlocHost& host, const std::vector<HwlocDevice>& devices);

// Links between GPUs, and to CPUs, from a matrix of bandwidths.
void read_hwloc_matrices(HwlocHost& host, const pugi::xml_node& topology);

}  // namespace gxp
