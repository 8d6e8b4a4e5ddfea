#include "lib/tools/topology/compare/host_diff.h"

#include <fmt/format.h>

#include "lib/base/text_file.h"
#include "lib/tools/topology/model/synthetic.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/smi_matrix.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const std::string& oci_h100() {
  static const std::string text =
      read_text_file(std::string(GXP_TEST_DATA) + "/topo/oci-H100-topology.xml", kMaxXmlBytes);
  return text;
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// The element that begins with `start`, cut out of the text.
std::string cut(std::string& text, const std::string& start, const std::string& end) {
  const size_t first = text.find(start);
  const size_t last = text.find(end, first) + end.size();
  const std::string element = text.substr(first, last - first);
  text.erase(first, last - first);
  return element;
}

std::vector<std::string> changes(const std::string& first, const std::string& second) {
  std::vector<std::string> lines;
  for (const HostChange& change :
       compare_hosts(read_nccl_xml(first, "first"), read_nccl_xml(second, "second")))
    lines.push_back(fmt::format("{} {} {}: {} / {}", to_string(change.kind), change.part,
                                change.what, change.first, change.second));
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("bus ids, the order of parts and of NUMA nodes do not count", "[inspect]") {
  CHECK(changes(oci_h100(), oci_h100()).empty());
  CHECK(changes(oci_h100(), replace_all(oci_h100(), "\"0000:", "\"00a1:")).empty());
  std::string turned = oci_h100();
  const std::string node = cut(turned, "<cpu numaid=\"0\"", "</cpu>");
  turned.insert(turned.find("</system>"), node);
  const std::string nic = cut(turned, "<pci busid=\"0000:0c:00.0\"", "</pci>");
  const std::string bridge = "subsystem_device=\"0x1003\" link_speed=\"32.0 GT/s PCIe\"";
  turned.insert(turned.find('>', turned.find("<pci busid=\"0000:0a:00.0\"")) + 1, nic);
  CHECK(changes(oci_h100(), turned).empty());
}

TEST_CASE("what is missing, slower or renamed is told, once", "[inspect]") {
  struct Edit {
    std::string from, to;
    Lines expected;
  };
  const auto edit = GENERATE(values<Edit>({
      {"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n          <gpu dev=\"0\"",
       "link_speed=\"32.0 GT/s PCIe\" link_width=\"8\">\n          <gpu dev=\"0\"",
       {"slower GPU0 PCIe lanes: 16 / 8"}},
      {"<nvlink target=\"0000:1c:00.0\" count=\"5\" tclass=\"0x068000\"/>\n"
       "            <nvlink target=\"0000:1b:00.0\" count=\"5\" tclass=\"0x068000\"/>\n"
       "            <nvlink target=\"0000:1a:00.0\" count=\"4\"",
       "<nvlink target=\"0000:1c:00.0\" count=\"5\" tclass=\"0x068000\"/>\n"
       "            <nvlink target=\"0000:1b:00.0\" count=\"5\" tclass=\"0x068000\"/>\n"
       "            <nvlink target=\"0000:1a:00.0\" count=\"1\"",
       {"slower GPU0 NVLinks to switches: 18 / 15"}},
      {"\"mlx5_13\" dev=\"11\" speed=\"180000\"",
       "\"mlx5_13\" dev=\"11\" speed=\"400000\"",
       {"faster mlx5_13 port: 180000 Mbit/s / 400000 Mbit/s"}},
      {"name=\"mlx5_17\"", "name=\"mlx5_18\"", {"changed mlx5_17 name: mlx5_17 / mlx5_18"}},
      {"modelid=\"143\"", "modelid=\"207\"", {"changed NUMA0 processor model: 143 / 207"}},
  }));
  std::string text = oci_h100();
  REQUIRE(text.find(edit.from) != std::string::npos);
  text.replace(text.find(edit.from), edit.from.size(), edit.to);
  CHECK(changes(oci_h100(), text) == edit.expected);
}

TEST_CASE("a subtree that is gone is one change, and one that is new", "[inspect]") {
  std::string without = oci_h100();
  cut(without, "<pci busid=\"0000:0a:00.0\"", "</nic>\n        </pci>\n      </pci>");
  const Lines gone = {"missing PCIe switch 0000:0a:00.0 : with 1 x NIC, 2 x port / "};
  CHECK(changes(oci_h100(), without) == gone);
  const Lines come = {"added PCIe switch 0000:0a:00.0 :  / with 1 x NIC, 2 x port"};
  CHECK(changes(without, oci_h100()) == come);
}

TEST_CASE("a NIC at another switch has moved, and is farther from its GPU", "[inspect]") {
  std::string moved = oci_h100();
  const std::string nic = cut(moved, "<pci busid=\"0000:0c:00.0\"", "</nic>\n        </pci>");
  moved.insert(moved.find("</cpu>"), nic);
  const Lines lines = changes(oci_h100(), moved);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "moved NIC 0000:0c:00.0 below: PCIe switch 0000:0a:00.0 / NUMA0");
  CHECK(lines[1] == "path GPU0-mlx5_0, GPU0-mlx5_1 path type: PIX / PHB");
}

TEST_CASE("what peers may do is compared, and not with places that a source does not tell",
          "[inspect]") {
  const auto host_of = [](const std::string& cell) {
    const std::string text = fmt::format("\tGPU0\tGPU1\nGPU0\tX\t{0}\nGPU1\t{0}\tX\n", cell);
    return host_of_matrix(read_pasted_matrix(text, "m.txt"), "m.txt");
  };
  CHECK(compare_hosts(host_of("OK"), host_of("OK")).empty());
  const auto lost = compare_hosts(host_of("OK"), host_of("NS"));
  REQUIRE(lost.size() == 2);
  CHECK((lost[0].part == "GPU0 to GPU1" && lost[0].first == "OK" && lost[0].second == "NS"));
  CHECK_THROWS_WITH(compare_hosts(host_of("OK"), host_of("PIX")),
                    Catch::Contains("topo -p2p does not describe how GPUs are connected"));
  CHECK_THROWS_WITH(compare_hosts(read_nccl_xml(oci_h100(), "n"), host_of("PIX")),
                    Catch::Contains("topo -m has no bus ids, bridges and speeds"));
}

TEST_CASE("NVSwitches are not missing where a source never names them", "[inspect]") {
  const HostTree host = make_synthetic("dgx-h100");
  CHECK(host.all_of(PartKind::kNvSwitch).size() == 4);
  CHECK(compare_hosts(host, read_nccl_xml(write_nccl_xml(host), "dumped")).empty());
  CHECK(compare_hosts(read_nccl_xml(write_nccl_xml(host), "dumped"), host).empty());
}

}  // namespace gxp
