#include "lib/tools/topology/nccl/host_of_tree.h"

#include <fmt/format.h>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

constexpr VertexId kFirstVertex = 0;  // the NUMA node

const std::string kTreeData = std::string(GXP_TEST_DATA) + "/topo/";

HostTopology parse(const std::string& text, const LinkLatencies& latencies = {}) {
  return host_topology_of(read_nccl_xml(text, "t.xml"), latencies);
}

HostTopology load(const std::string& file, const LinkLatencies& latencies = {}) {
  return parse(read_text_file(kTreeData + file, 1 << 20), latencies);
}

std::string in_system_element(const std::string& text) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + text + "\n</cpu></system>";
}

// A GPU with what its <gpu> holds.
std::string gpu_element(const std::string& bus, const std::string& inside) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
      "<gpu sm=\"80\">{}</gpu></pci>\n",
      bus, inside);
}

Path path_of_pair(const HostTopology& host, VertexId from, VertexId to) {
  return find_paths(host.graph, from, {&to, 1})[0];
}

}  // namespace

TEST_CASE("an H100 host: NVLink between GPUs, two ports a NIC, each GPU near its own", "[topo]") {
  const HostTopology host = load("oci-H100-topology.xml");
  REQUIRE(host.gpus.size() == 8);
  REQUIRE(host.nics.size() == 8);
  CHECK(host.nics[0].gb_per_s == 45);  // twice 180 Gbit/s
  CHECK(path_of_pair(host, host.gpus[0], host.gpus[7]).gb_per_s == Approx(18 * 20.6));
  CHECK(path_of_pair(host, host.gpus[0], host.nics[0].vertex).gb_per_s == 48);  // 16 lanes of gen 5
  CHECK(nearest_nics(host) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(host.notes.empty());
}

TEST_CASE("an A100 host without NVLinks in its file: PCIe, and across the sockets", "[topo]") {
  const HostTopology host = load("aws-p4d-24xl-topo.xml", {.pcie_s = 1e-6});
  REQUIRE(host.gpus.size() == 8);
  REQUIRE(host.nics.size() == 4);
  CHECK(path_of_pair(host, host.gpus[0], host.gpus[1]).gb_per_s == 12);  // 16 lanes of gen 3
  CHECK(path_of_pair(host, host.gpus[0], host.gpus[1]).latency_s == Approx(2e-6));
  CHECK(path_of_pair(host, host.gpus[0], host.gpus[7]).gb_per_s == 10);  // Skylake
  CHECK(nearest_nics(host) == std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(host.nics[0].gb_per_s == 0);  // the file does not say
}

TEST_CASE("direct NVLinks and chip-to-chip links are read", "[topo]") {
  const HostTopology host = parse(in_system_element(
      gpu_element("0000:01:00.0", "<nvlink target=\"0000:02:00.0\" count=\"4\"/>") +
      gpu_element("0000:02:00.0",
                  "<nvlink target=\"0000:01:00.0\" count=\"4\"/>"
                  "<c2c bw=\"90000\" count=\"5\"/>")));
  CHECK(path_of_pair(host, host.gpus[0], host.gpus[1]).gb_per_s == 80);
  CHECK(path_of_pair(host, host.gpus[1], kFirstVertex).gb_per_s == 450);
}

TEST_CASE("AMD's links are as wide as RCCL takes them", "[topo]") {
  const std::string text = in_system_element(
      "<pci busid=\"1\" class=\"0x038000\"><gpu gcn=\"gfx942\">"
      "<xgmi target=\"2\" count=\"2\"/></gpu></pci><pci busid=\"2\" class=\"0x038000\"/>");
  const HostTopology host = parse(text);
  CHECK(path_of_pair(host, host.gpus[0], host.gpus[1]).gb_per_s == 96);
}

TEST_CASE("GPUs are ordered by dev if all have one", "[topo]") {
  const HostTopology host = parse(in_system_element(
      "<pci busid=\"1\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"1\"><gpu "
      "dev=\"1\"/></pci>"
      "<pci busid=\"2\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"2\"><gpu "
      "dev=\"0\"/></pci>"));
  CHECK(path_of_pair(host, host.gpus[0], kFirstVertex).gb_per_s == 1.5);
  CHECK(path_of_pair(host, host.gpus[1], kFirstVertex).gb_per_s == 0.75);
}

TEST_CASE("what a file leaves out or says wrongly is noted with its line", "[topo]") {
  const auto [text, note] = GENERATE(table<std::string, std::string>({
      {"<pci busid=\"1\" class=\"0x03\" link_width=\"16\"/>",
       "t.xml:3:1: link_speed \"\" is unknown; 8 GT/s assumed"},
      {"<pci busid=\"1\" class=\"0x03\" link_speed=\"fast\" link_width=\"16\"/>",
       "t.xml:3:1: link_speed \"fast\" is unknown; 8 GT/s assumed"},
      {"<pci busid=\"1\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"0\"/>",
       "t.xml:3:1: link_width is unknown; 16 assumed"},
      {"<pci busid=\"1\" link_speed=\"8 GT/s\" link_width=\"16\"/>",
       "t.xml:3:1: the device has no class; treated as neither GPU nor NIC"},
      {gpu_element("1", "<nvlink target=\"1\"/>"),
       "t.xml:3:90: <nvlink target=\"1\"> leads to the GPU itself; "
       "ignored"},
      {gpu_element("1", "<nvlink target=\"9\"/>"),
       "t.xml:3:90: <nvlink target=\"9\"> leads to no device here; "
       "ignored"},
  }));
  CHECK(parse(in_system_element(text)).notes == std::vector<std::string>{note});
}

TEST_CASE("two devices with the same bus id make no graph", "[topo]") {
  const auto convert = [] {
    parse(in_system_element(gpu_element("1", "") + gpu_element("1", "")));
  };
  CHECK(complaint(ErrorKind::kCorrupt, convert) ==
        "read topology t.xml:4:1: <pci busid=\"1\"> occurs twice; bus ids are unique in a host");
}

TEST_CASE("a topology with more devices than a graph holds is an error", "[topo]") {
  std::string devices;
  for (int i = 0; i < 5000; ++i) devices += gpu_element(std::to_string(i), "");
  CHECK(complaint(ErrorKind::kConfig, [&] {
          parse(in_system_element(devices));
        }).find("4096 vertices") != std::string::npos);
}

}  // namespace gxp
