// Steps of reading hwloc's XML; hwloc_xml.h is the way in.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/topo/model/cpu_set.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/pci_tree.h"
#include "lib/topo/read/xml_text.h"

namespace gxp {

using XmlNodes = std::vector<pugi::xml_node>;

std::string_view type_of(const pugi::xml_node& object);
// "" if it has no such <info>.
std::string info_of(const pugi::xml_node& object, std::string_view name);

// What the whole of it says, from 0 to 2^20; none: it says something else.
std::optional<int> parse_small_number(std::string_view text);

struct HwlocHost {
  const XmlText& xml;
  int version = 2;  // of the format
  HostTree tree{};
  // By the numbers that matrices use: "OSDev:332".
  std::map<std::string, PartId> by_index{};
};

// A NUMA node of the tree and its CPUs.
struct HwlocNode {
  PartId part = kNoPart;
  CpuSet cpus{};
};

// From a PCIe device, interface or bridge that hangs on CPU objects, and all below it.
class HwlocDevices {
 public:
  explicit HwlocDevices(HwlocHost& host) : host_(host) {}
  // `object` is a child of an object with CPUs, of which `node` is the nearest.
  void add(const pugi::xml_node& object, PartId node);
  // When all are added: speeds that no link has, a note each.
  void note_odd_speeds();

 private:
  void collect(const pugi::xml_node& object, int above, int depth);
  void add_function(const pugi::xml_node& object, int above, int depth);
  PciFunction function_of(const pugi::xml_node& object);
  void describe(PartId part, const XmlNodes& devices);
  void describe_gpu(GpuInfo& gpu, const pugi::xml_node& device);
  void add_ports(PartId nic, const XmlNodes& devices);
  void add_rdma_ports(PartId nic, const pugi::xml_node& device, const std::string& interface);
  [[nodiscard]] bool is_network(const pugi::xml_node& device) const;
  [[nodiscard]] bool is_rdma(const pugi::xml_node& device) const;
  void name_index(const pugi::xml_node& object, PartId part);

  HwlocHost& host_;
  PciRoot root_;
  XmlNodes objects_;                       // of root_'s functions
  std::vector<XmlNodes> devices_;          // of root_'s functions
  std::map<double, XmlNodes> odd_speeds_;  // in GB/s
};

// Links between GPUs, and to CPUs, from a matrix of bandwidths.
void read_hwloc_matrices(HwlocHost& host, const pugi::xml_node& topology);

}  // namespace gxp
