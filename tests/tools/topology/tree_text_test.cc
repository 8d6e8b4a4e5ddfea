#include "lib/tools/topology/view/tree_text.h"

#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

std::string text_of(const std::string& inside) {
  const HostTree host = read_nccl_xml(
      "<system version=\"1\"><cpu numaid=\"0\" affinity=\"f0f\" arch=\"x86_64\" "
      "vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"17\">" +
          inside + "</cpu></system>",
      "t.xml");
  return tree_text(host);
}

std::string pci(const std::string& bus, const std::string& type, const std::string& inside) {
  return "<pci busid=\"" + bus + "\" class=\"" + type +
         "\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\">" + inside + "</pci>";
}

}  // namespace

TEST_CASE("a tree has a line for what branches and for devices", "[inspect]") {
  const std::string gpu = pci("0000:03:00.0", "0x030200", "<gpu dev=\"0\" sm=\"80\"/>");
  const std::string nic = pci("0000:04:00.0", "0x020700",
                              "<nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\"/></nic>");
  const std::string bridged = pci("0000:02:00.0", "0x060400", gpu);
  CHECK(
      text_of(pci("0000:01:00.0", "0x060400", bridged + nic) + "<nic><net name=\"eth0\"/></nic>") ==
      "NUMA0  AuthenticAMD family 25 model 17, CPUs 0-3,8-11\n"
      "  switch       0000:01:00.0  PCIe 16 GT/s x8\n"
      "    GPU0  0000:03:00.0  sm_80, PCIe 16 GT/s x8, behind 1 bridge\n"
      "    NIC   0000:04:00.0  PCIe 16 GT/s x8: mlx5_0 200 Gbit/s\n"
      "  virtual NIC                eth0\n");
}

TEST_CASE("links that are alike are told once", "[inspect]") {
  const auto gpu = [](const std::string& bus, const std::string& links) {
    return "<pci busid=\"" + bus + "\"><gpu>" + links + "</gpu></pci>";
  };
  const auto link = [](const std::string& target, const std::string& more = "") {
    return "<nvlink target=\"" + target + "\" count=\"2\"" + more + "/>";
  };
  const auto [inside, said] = GENERATE_COPY(table<std::string, std::string>({
      {gpu("1", link("9", " tclass=\"0x068000\"")) + gpu("2", link("8", " tclass=\"0x068000\"")),
       "NVLinks of GPU0, GPU1, each: 2 to NVSwitches\n"},
      {gpu("1", link("2") + link("3")) + gpu("2", link("1") + link("3")) +
           gpu("3", link("1") + link("2")),
       "NVLinks of GPU0-GPU2: 2 between any two\n"},
      {gpu("1", link("2")) + gpu("2", link("2") + link("7")),
       "NVLinks of GPU0: 2 to GPU1\nNVLinks of GPU1: 2 to itself, 2 to 7, which is not in the "
       "topology\n"},
      {gpu("1", "<c2c bw=\"90000\" count=\"5\"/>"), "C2Cs of GPU0: 5 to NUMA0, 90 GB/s each\n"},
  }));
  CHECK(text_of(inside).find(said) != std::string::npos);
}

TEST_CASE("of many ports and of many other devices only some are told", "[inspect]") {
  std::string ports;
  std::string devices;
  for (int i = 0; i < 61; ++i) ports += "<net name=\"veth" + std::to_string(i) + "\"/>";
  for (int i = 0; i < 7; ++i) devices += pci(std::to_string(i), "0x010601", "");
  const std::string text = text_of("<nic>" + ports + "</nic>" + devices);
  CHECK(text.find("veth6, veth7, and 53 more\n") != std::string::npos);
  CHECK(text.find("  7 other PCIe devices\n") != std::string::npos);
}

TEST_CASE("rings and trees are told channel by channel", "[inspect]") {
  Topology topology{.name = "g.xml", .source = "dump"};
  topology.channel_graphs = {
      {.id = 0, .pattern = 4, .speed_intra = 12, .type_intra = "SYS", .channels = {{}}}};
  topology.channel_graphs[0].channels[0].devices = {{.dev = 1}, {.dev = 0}};
  CHECK(tree_text(topology) ==
        "g.xml (dump): 1 graph\n"
        "graph 0, ring: 1 channel; 12 GB/s between GPUs (SYS)\n"
        "  GPU1 GPU0\n");
}

TEST_CASE("a cluster is told by its switches, hosts that are alike once", "[inspect]") {
  const auto tree = std::make_shared<HostTree>();
  tree->source = "made";
  tree->add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{.model_name = "CPU"}});
  Topology topology{.name = "c", .source = "made too", .trees = {tree}};
  topology.switches = {{.name = "spine"}, {.name = "leaf", .above = 0, .uplink_gb_per_s = 25}};
  for (const char* name : {"n1", "n2", "n3"})
    topology.hosts.push_back({.name = name, .tree = 0, .leaves = {1}});
  CHECK(tree_text(topology) ==
        "c (made too): 3 hosts, 2 switches\n"
        "switch spine\n"
        "  switch leaf: n1-n3; up 25 GB/s\n"
        "\n"
        "n1-n3 (made): 1 NUMA node\n"
        "NUMA0  CPU\n");
}

}  // namespace gxp
