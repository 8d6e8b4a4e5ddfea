#include "lib/tools/topology/view/path_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/smi_matrix.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

HostTree load_topology_file(const std::string& name) {
  const std::string file = std::string(GXP_TEST_DATA) + "/topo/" + name + ".xml";
  return read_nccl_xml(read_text_file(file, kMaxXmlBytes), name);
}

// The facts of a path, "type: SYS" each, and its hops.
std::string path_text(const std::string& host_name, const std::string& from,
                      const std::string& to) {
  const HostTree host = load_topology_file(host_name);
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  Report report{.schema = "gxp.topo/1"};
  add_path(report, routes, find_end(paths, from), find_end(paths, to));
  return to_text(report);
}

}  // namespace

TEST_CASE("a path's report says hops, limit, where NCCL sends data, and why", "[inspect]") {
  CHECK(path_text("oci-H100-topology", "gpu0", "mlx5_13") ==
        R"(from: GPU0
to: mlx5_13
type: SYS
  because: through NUMA0, NUMA1
GB/s, as NCCL counts: 6
limited by: PCIe switch 0000:08:00.0 -> NUMA0
NCCL uses: PXN
  because: NVLink to GPU5, which is nearest to the NIC
  GB/s: 22.5
GPUDirect RDMA, sending: yes
  because: PIX is within P2C, the limit for GPUDirect RDMA (of GPU5, which relays)
GPUDirect RDMA, receiving: yes
  because: PIX is within P2C, the limit for GPUDirect RDMA (of GPU5, which relays)
flush after receiving: no
  because: NCCL needs none from Hopper (sm_90) on

from                      to                        link        GB/s  physical GB/s  limits
GPU0                      PCIe switch 0000:08:00.0  PCIe          48          63.02
PCIe switch 0000:08:00.0  NUMA0                     PCIe           6              8  limits
NUMA0                     NUMA1                     inter-NUMA    22
NUMA1                     PCIe switch 0000:a1:00.0  PCIe           6              8
PCIe switch 0000:a1:00.0  NIC 0000:a5:00.0          PCIe          48          63.02
NIC 0000:a5:00.0          mlx5_13                   network     22.5           22.5
)");
}

TEST_CASE("the reason of a type names what is passed", "[inspect]") {
  const auto [host, from, to, reason] =
      GENERATE(table<std::string, std::string, std::string, std::string>({
          {"oci-H100-topology", "GPU0", "GPU0", "type: LOC\n  because: the device itself"},
          {"oci-H100-topology", "GPU0", "GPU7", "type: NVL\n  because: NVLinks to NVSwitches"},
          {"oci-H100-topology", "GPU0", "0000:0c:00.0", "through PCIe switch 0000:08:00.0"},
          {"rccl-topo_8p6l", "GPU0", "GPU5", "through GPU1, which relays; RCCL, unlike NCCL"},
          {"rccl-topo_8p_940", "GPU0", "mlx5_7", "NCCL uses: PXN"},
          {"aws-p4d-24xl-topo", "GPU0", "GPU2", "PCIe through NUMA0"},
          {"aws-p4d-24xl-topo", "GPU0", "GPU2", "PHB is beyond PXB, NCCL's limit"},
      }));
  CAPTURE(host, from, to);
  CHECK_THAT(path_text(host, from, to), Catch::Contains(reason));
}

// The same of a pasted matrix.
std::string path_in_matrix(const std::string& text, const std::string& from,
                           const std::string& to) {
  const HostTree host = host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt");
  const NcclPaths paths(host);
  Report report{.schema = "gxp.topo/1"};
  add_path(report, NcclRoutes(paths), find_end(paths, from), find_end(paths, to));
  return to_text(report);
}

TEST_CASE("a matrix tells types of paths, and no speeds", "[inspect]") {
  const std::string text =
      "GPU0 GPU1 NIC0 CPU Affinity\nGPU0 X NV4 PIX 0-3\nGPU1 NV4 X SYS 4-7\nNIC0: mlx5_4\n";
  const auto [from, to, type] = GENERATE(table<std::string, std::string, std::string>(
      {{"GPU0", "NIC0", "PIX"}, {"GPU0", "mlx5_4", "PIX"}, {"GPU0", "GPU1", "NVL"}}));
  const std::string report = path_in_matrix(text, from, to);
  CAPTURE(report);
  CHECK_THAT(report, Catch::Contains("type: " + type));
  CHECK_THAT(report, Catch::Contains("GB/s: unknown: nvidia-smi topo -m has no speeds"));
  CHECK_THAT(report, !Catch::Contains("limited by") && !Catch::Contains("1.25"));
}

TEST_CASE("a port without a speed has NCCL's default, or none where its source tells none",
          "[inspect]") {
  const auto [known, said] = GENERATE(table<bool, std::string>({
      {true,
       "GB/s, as NCCL counts: 1.25\nlimited by: NIC 0000:02:00.0 -> eth7\nassumed: 10 Gbit/s, "
       "NCCL's default, for eth7, whose speed is unknown"},
      {false, "GB/s: unknown: a file has no speed for eth7"},
  }));
  HostTree host = read_nccl_xml(
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
      "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\" rank=\"0\"/></pci>"
      "<pci busid=\"0000:02:00.0\" class=\"0x020000\"><nic><net name=\"eth7\" dev=\"0\"/></nic>"
      "</pci></cpu></system>",
      "t.xml");
  host.source = "a file";
  host.port_speeds_known = known;
  const NcclPaths paths(host);
  Report report{.schema = "gxp.topo/1"};
  add_path(report, NcclRoutes(paths), find_end(paths, "GPU0"), find_end(paths, "eth7"));
  CHECK_THAT(to_text(report), Catch::Contains(said));
}

TEST_CASE("peer states decide peer-to-peer", "[inspect]") {
  const auto [state, verdict] = GENERATE(table<std::string, std::string>({
      {"OK", "peer-to-peer: unknown\n  because: NVML reports OK"},
      {"U", "peer-to-peer: unknown\n  because: NVML reports U"},
      {"TNS", "peer-to-peer: no\n  because: NVML reports TNS: the topology"},
      {"CNS", "peer-to-peer: no\n  because: NVML reports CNS: the chipset"},
      {"GNS", "peer-to-peer: no\n  because: NVML reports GNS: a GPU"},
      {"NS", "peer-to-peer: no\n  because: NVML reports NS"},
      {"DR", "peer-to-peer: no\n  because: NVML reports DR: a registry key"},
  }));
  const std::string states = fmt::format("GPU0 GPU1\nGPU0 X {0}\nGPU1 {0} X\n", state);
  const std::string alone = path_in_matrix(states, "GPU0", "GPU1");
  CHECK_THAT(alone, Catch::Contains(verdict));
  CHECK_THAT(alone, Catch::Contains("type: unknown") && !Catch::Contains("PHB"));
  // With the places of the GPUs beside it.
  const std::string places = "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n";
  const std::string both = path_in_matrix(places + states, "GPU0", "GPU1");
  CHECK_THAT(both, Catch::Contains("NVML reports " + state));
  CHECK_THAT(both,
             Catch::Contains(contains(verdict, ": no") ? "peer-to-peer: no" : "peer-to-peer: yes"));
  CHECK((both.find("NCCL uses: PHB") != std::string::npos) == contains(verdict, ": no"));
}

TEST_CASE("a path needs two ends that NCCL has", "[inspect]") {
  CHECK_THROWS_WITH(path_text("oci-H100-topology", "GPU8", "GPU0"),
                    Catch::Contains("find \"GPU8\"") && Catch::Contains("no such device"));
  CHECK_THROWS_WITH(path_text("oci-H100-topology", "0000:08:00.0", "GPU0"),
                    Catch::Contains("it is a PCIe switch"));
}

TEST_CASE("all paths: between any two GPUs and ports", "[inspect]") {
  const HostTree host = load_topology_file("oci-H100-topology");
  const NcclPaths paths(host);
  Report report{.schema = "gxp.topo/1"};
  Table& table = report.add_table("paths", path_columns());
  add_paths(table, NcclRoutes(paths), 3);
  CHECK(table.rows.size() == 24 * 23);
  const std::vector<Cell> nvlink = {"GPU0",     "GPU1", "NVL", 370.8, "GPU0 -> NVSwitch",
                                    int64_t{3}, "NVL",  370.8, ""};
  CHECK(table.rows[0] == nvlink);
}

}  // namespace gxp
