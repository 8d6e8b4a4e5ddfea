#include "lib/tools/topology/view/device_matrix.h"

#include <fmt/format.h>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const std::string kData = std::string(GXP_TEST_DATA) + "/topo/";

HostTree load_matrix(const std::string& name) {
  return read_nccl_xml(read_text_file(kData + name + ".xml", kMaxXmlBytes), name);
}

std::string golden(const std::string& name) {
  return read_text_file(kData + "matrix/" + name + ".txt", kMaxXmlBytes);
}

// GPUs 0 and 1 on one switch, 2 on a second switch below it, 3 at the same host bridge, 4 at
// another host bridge, 5 at another NUMA node.
HostTree host_of_all_distances() {
  HostTree host;
  const auto add = [&](PartKind kind, PartId above) {
    return host.add({.kind = kind,
                     .above = above,
                     .bus_id = fmt::format("0000:{:02x}:00.0", host.parts().size())});
  };
  const auto add_root = [&] {
    const PartId node = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{}});
    return add(PartKind::kHostBridge, node);
  };
  const PartId bridge = add_root();
  const PartId upper = add(PartKind::kPcieSwitch, bridge);
  const PartId lower = add(PartKind::kPcieSwitch, upper);
  const PartId second = add(PartKind::kHostBridge, host[bridge].above);
  int number = 0;
  for (const PartId above : {upper, upper, lower, bridge, second, add_root()})
    host[add(PartKind::kGpu, above)].info = GpuInfo{.number = number++};
  return host;
}

}  // namespace

TEST_CASE("matrices are as kept, in nvidia-smi's form and in NCCL's", "[inspect]") {
  const std::string name = GENERATE("aws-p4d-24xl-topo", "oci-H100-topology", "rccl-topo_8p6l");
  CAPTURE(name);
  const HostTree host = load_matrix(name);
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  CHECK(matrix_text(host, smi_matrix(host), smi_legend(host)) == golden(name + ".smi"));
  CHECK(matrix_text(host, nccl_matrix(paths, routes, NcclView::kUsed), nccl_legend()) ==
        golden(name + ".nccl"));
}

TEST_CASE("each distance over PCIe has nvidia-smi's word", "[inspect]") {
  const DeviceMatrix matrix = smi_matrix(host_of_all_distances());
  CHECK(matrix.cells[0] == std::vector<std::string>{"X", "PIX", "PXB", "PHB", "NODE", "SYS"});
  CHECK(matrix.cells[4] == std::vector<std::string>{"NODE", "NODE", "NODE", "NODE", "X", "SYS"});
  CHECK(matrix.notes.empty());
}

TEST_CASE("functions of one device are as near as ports of one NIC", "[inspect]") {
  HostTree host;
  const PartId node = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{}});
  for (const char* bus_id : {"0000:02:00.0", "0000:02:00.1", "0000:02:01.0"})
    host.add({.kind = PartKind::kNic, .above = node, .bus_id = bus_id});
  CHECK(smi_matrix(host).cells[0] == std::vector<std::string>{"X", "PIX", "PHB"});
}

TEST_CASE("cells that differ are told by their reason", "[inspect]") {
  const HostTree host = load_matrix("oci-H100-topology");
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  const DeviceMatrix smi = smi_matrix(host);
  const auto wired = compare(smi, nccl_matrix(paths, routes, NcclView::kWired), paths, routes);
  REQUIRE(wired.size() == 2);
  CHECK(wired[0].smi + wired[0].nccl == "PXBPIX");
  CHECK(wired[0].why == "NCCL takes the two levels of a Broadcom switch as one");
  CHECK(wired[0].cells.size() == 32);
  CHECK(cells_text(host, smi, wired[0]) ==
        "GPU0-NIC0, GPU0-NIC1, GPU1-NIC2, GPU1-NIC3, GPU2-NIC4, GPU2-NIC5, GPU3-NIC6, GPU3-NIC7 "
        "and 24 more");
  const auto used = compare(smi, nccl_matrix(paths, routes, NcclView::kUsed), paths, routes);
  CHECK(used.size() == 4);  // also PHB and SYS to PXN
}

TEST_CASE("NODE and links that lead nowhere differ, too", "[inspect]") {
  const HostTree host = host_of_all_distances();
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  const auto found =
      compare(smi_matrix(host), nccl_matrix(paths, routes, NcclView::kWired), paths, routes);
  REQUIRE(found.size() == 1);
  CHECK(found[0].smi + found[0].nccl == "NODEPHB");
  const HostTree vm = load_matrix("azure-ncv4-topo");  // its NVLinks lead to the GPUs themselves
  CHECK(smi_matrix(vm).cells[0] == std::vector<std::string>{"X", "SYS", "SYS", "SYS"});
}

}  // namespace gxp
