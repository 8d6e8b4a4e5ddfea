#include "lib/topo/nccl_xml.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

const std::string kData = std::string(GXP_TEST_DATA) + "/topo/";

HostTopology parse(const std::string& text) { return parse_nccl_topology(text, "t.xml", {}); }

std::string in_system(const std::string& text) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + text + "\n</cpu></system>";
}

// A GPU with what its <gpu> holds.
std::string gpu(const std::string& bus, const std::string& inside) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
      "<gpu sm=\"80\">{}</gpu></pci>\n",
      bus, inside);
}

Path path_between(const HostTopology& host, VertexId from, VertexId to) {
  return find_paths(host.graph, from, {&to, 1})[0];
}

std::string nested(int depth) {
  std::string open;
  std::string close;
  for (int i = 0; i < depth; ++i) {
    open += fmt::format("<pci busid=\"{}\" link_speed=\"16 GT/s\" link_width=\"16\">", i);
    close += "</pci>";
  }
  return in_system(open + close);
}

}  // namespace

TEST_CASE("an H100 host: NVLink between GPUs, two ports a NIC, each GPU near its own", "[topo]") {
  const HostTopology host = load_nccl_topology(kData + "oci-H100-topology.xml", {});
  REQUIRE(host.gpus.size() == 8);
  REQUIRE(host.nics.size() == 8);
  CHECK(host.nics[0].gb_per_s == 45);  // twice 180 Gbit/s
  CHECK(path_between(host, host.gpus[0], host.gpus[7]).gb_per_s == Approx(18 * 20.6));
  CHECK(path_between(host, host.gpus[0], host.nics[0].vertex).gb_per_s == 48);  // 16 lanes of gen 5
  CHECK(nearest_nics(host) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(host.notes.empty());
}

TEST_CASE("an A100 host without NVLinks in its file: PCIe, and across the sockets", "[topo]") {
  const HostTopology host = load_nccl_topology(kData + "aws-p4d-24xl-topo.xml", {.pcie_s = 1e-6});
  REQUIRE(host.gpus.size() == 8);
  REQUIRE(host.nics.size() == 4);
  CHECK(path_between(host, host.gpus[0], host.gpus[1]).gb_per_s == 12);  // 16 lanes of gen 3
  CHECK(path_between(host, host.gpus[0], host.gpus[1]).latency_s == Approx(2e-6));
  CHECK(path_between(host, host.gpus[0], host.gpus[7]).gb_per_s == 10);  // Skylake
  CHECK(nearest_nics(host) == std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(host.nics[0].gb_per_s == 0);  // the file does not say
}

TEST_CASE("direct NVLinks and chip-to-chip links are read", "[topo]") {
  const HostTopology host =
      parse(in_system(gpu("0000:01:00.0", "<nvlink target=\"0000:02:00.0\" count=\"4\"/>") +
                      gpu("0000:02:00.0",
                          "<nvlink target=\"0000:01:00.0\" count=\"4\"/>"
                          "<c2c bw=\"90000\" count=\"5\"/>")));
  CHECK(path_between(host, host.gpus[0], host.gpus[1]).gb_per_s == 80);
  CHECK(path_between(host, host.gpus[1], host.graph.all_of(VertexKind::kNumaNode)[0]).gb_per_s ==
        450);
}

TEST_CASE("GPUs are ordered by dev if all have one", "[topo]") {
  const HostTopology host =
      parse(in_system("<pci busid=\"1\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"1\"><gpu "
                      "dev=\"1\"/></pci>"
                      "<pci busid=\"2\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"2\"><gpu "
                      "dev=\"0\"/></pci>"));
  const VertexId node = host.graph.all_of(VertexKind::kNumaNode)[0];
  CHECK(path_between(host, host.gpus[0], node).gb_per_s == 1.5);
  CHECK(path_between(host, host.gpus[1], node).gb_per_s == 0.75);
}

TEST_CASE("what a file leaves out or says wrongly is noted with its line", "[topo]") {
  const auto [text, note] = GENERATE(table<std::string, std::string>({
      {"<pci busid=\"1\" class=\"0x03\" link_width=\"16\"/>",
       "t.xml:3: link_speed \"\" is not known; 8 GT/s assumed"},
      {"<pci busid=\"1\" class=\"0x03\" link_speed=\"fast\" link_width=\"16\"/>",
       "t.xml:3: link_speed \"fast\" is not known; 8 GT/s assumed"},
      {"<pci busid=\"1\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"0\"/>",
       "t.xml:3: link_width is not known; 16 assumed"},
      {"<pci busid=\"1\" link_speed=\"8 GT/s\" link_width=\"16\"/>",
       "t.xml:3: the device has no class; taken for neither GPU nor NIC"},
      {gpu("1", "<nvlink target=\"1\"/>"),
       "t.xml:3: <nvlink target=\"1\"> leads to the GPU itself; "
       "ignored"},
      {gpu("1", "<nvlink target=\"9\"/>"),
       "t.xml:3: <nvlink target=\"9\"> leads to no device here; "
       "ignored"},
  }));
  CHECK(parse(in_system(text)).notes == std::vector<std::string>{note});
}

TEST_CASE("a broken topology file is an error that says where and why", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"", "t.xml:1: "},
      {"<system", "t.xml:1: "},
      {"\n\n<system version=\"1\"><cpu></system>", "t.xml:3: "},
      {"<graphs/>", "t.xml:1: there is no <system>; is it a topology that NCCL wrote?"},
      {"<system version=\"2\"/>", "t.xml:1: <system version=\"2\">: only 1 is known"},
      {in_system("<pci/>"), "t.xml:3: <pci> has no busid; every device needs one"},
      {in_system(gpu("1", "") + gpu("1", "")), "t.xml:4: <pci busid=\"1\"> stands twice"},
      {in_system("<pci busid=\"1\" class=\"0x03\" link_width=\"-4\"/>"),
       "t.xml:3: <pci link_width=\"-4\">: must be a number from 0 to 64"},
      {in_system("<pci busid=\"1\" class=\"0x03\" link_width=\"1e999\"/>"), "must be a number"},
      {in_system(gpu("1", "<nvlink target=\"2\" count=\"nan\"/>")),
       "<nvlink count=\"nan\">: must be a number from 1 to 1024"},
      {in_system(gpu("1", "<c2c count=\"1\"/>")), "<c2c> has no bw"},
      {in_system("<nic><net speed=\"-1\"/></nic>"), "<net speed=\"-1\">: must be a number"},
      {nested(kMaxXmlDepth + 1), "t.xml:3: <pci> lies more than 32 deep"},
  }));
  CAPTURE(text);
  const std::string message = complaint(ErrorKind::kCorrupt, [&, &t = text] { parse(t); });
  CHECK(message.find("read topology t.xml:") == 0);
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("nesting up to the limit is fine", "[topo]") {
  CHECK(parse(nested(kMaxXmlDepth)).graph.vertices().size() == size_t(kMaxXmlDepth) + 1);
}

TEST_CASE("a topology with more devices than a graph holds is an error", "[topo]") {
  std::string devices;
  for (int i = 0; i < 5000; ++i) devices += gpu(std::to_string(i), "");
  CHECK(complaint(ErrorKind::kConfig, [&] { parse(in_system(devices)); }).find("4096 vertices") !=
        std::string::npos);
}

TEST_CASE("every prefix of a topology file is read or refused", "[topo]") {
  const std::string whole = in_system(gpu("0000:01:00.0", "<c2c bw=\"9\" count=\"5\"/>"));
  for (size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(complaint(ErrorKind::kCorrupt, [&] { parse(whole.substr(0, length)); }) != "");
  }
}

}  // namespace gxp
