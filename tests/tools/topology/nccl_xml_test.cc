#include "lib/tools/topology/read/nccl_xml.h"

#include <fmt/format.h>

#include "lib/base/text_file.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"
#include "tests/tools/topology/same_xml.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

const std::string kXmlData = std::string(GXP_TEST_DATA) + "/topo/";

HostTree parse_nccl(const std::string& text) { return read_nccl_xml(text, "t.xml"); }

std::string in_system(const std::string& text) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + text + "\n</cpu></system>";
}

std::string gpu(const std::string& bus, const std::string& inside) {
  return fmt::format("<pci busid=\"{}\" class=\"0x030200\"><gpu sm=\"80\">{}</gpu></pci>\n", bus,
                     inside);
}

std::string nested(int depth) {
  std::string open;
  std::string close;
  for (int i = 0; i < depth; ++i) {
    open += fmt::format("<pci busid=\"{}\">", i);
    close += "</pci>";
  }
  return in_system(open + close);
}

}  // namespace

TEST_CASE("a topology is written back as it was read", "[topo]") {
  const std::string file =
      GENERATE("azure-ncv4-topo.xml", "azure-ndv4-topo.xml", "aws-p4d-24xl-topo.xml",
               "aws-g5.48xl-topo.xml", "aws-p5.48xl-topo-2025-06.xml", "oci-H100-topology.xml",
               "oci-topo-flattened.xml", "rccl-topo_8p_940.xml", "rccl-topo_4p3l_n4.xml");
  CAPTURE(file);
  const std::string text = read_text_file(kXmlData + file, 1 << 20);
  const HostTree host = read_nccl_xml(text, file);
  CHECK(first_difference(text, write_nccl_xml(host)) == "");
  CHECK(host.notes.empty());
}

TEST_CASE("what has no field is written back too, in its place", "[topo]") {
  const std::string inside = GENERATE(
      "<pci busid=\"1\"><gpu/></pci>", "<pci busid=\"1\"><nic/></pci>",
      "<pci busid=\"1\" class=\"0x03\"><gpu dev=\"0\"/><gpu dev=\"0\" rank=\"1\"/></pci>",
      "<pci busid=\"1\"><gpu dev=\"0\"/><nic><net dev=\"0\"/></nic></pci>",
      "<pci busid=\"1\" link_speed=\"\" link_width=\"0\" new=\"5\"><gpu new=\"6\"/></pci>",
      "<pci busid=\"1\"><gpu sm=\"90\"><new a=\"1\"><in/></new></gpu><odd/></pci>",
      "<pci busid=\"1\"><nic guid=\"0x5\"><net rail=\"1\"><x/></net><y/></nic></pci>",
      "<pci busid=\"1\" class=\"0x060400\"><pci busid=\"1\"/><pcilink target=\"1\"/></pci>",
      "<nic><net name=\"a&amp;b\" speed=\"-1\" latency=\"1.25\"/><net/></nic><new>text</new>");
  CAPTURE(inside);
  const std::string text = in_system(inside);
  CHECK(first_difference(text, write_nccl_xml(parse_nccl(text))) == "");
}

TEST_CASE("parts, their fields and places are read", "[topo]") {
  const HostTree host = parse_nccl(in_system(
      "  <pci busid=\"0000:AA:00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\""
      " link_width=\"8\"><nic><net name=\"mlx5_0\" dev=\"0x2\" speed=\"100000\"/></nic></pci>\n" +
      gpu("1", "<nvlink target=\"0000:aa:00.0\" count=\"2\"/><c2c bw=\"90000\" count=\"5\"/>")));
  const PartId nic = host.find_bus("0000:aa:00.0");
  REQUIRE(nic != kNoPart);
  CHECK(host[nic].kind == PartKind::kNic);
  CHECK(host[nic].place.line == 3);
  CHECK(host[nic].place.column == 3);
  CHECK(host[nic].link.now.gt_per_s == 16);
  const Part& port = host[host[nic].below[0]];
  CHECK(std::get<PortInfo>(port.info).number == 2);
  CHECK(std::get<PortInfo>(port.info).mbit_per_s == 100000);
  REQUIRE(host.cross_links().size() == 2);
  CHECK(host.cross_links()[0].to == nic);
  CHECK(host.cross_links()[1].to == host.all_of(PartKind::kNumaNode)[0]);
  CHECK(host.cross_links()[1].gb_per_s == 90);
}

TEST_CASE("what nobody knows is noted with its place, once a kind", "[topo]") {
  const auto [text, note] = GENERATE(table<std::string, std::string>({
      {"<pci busid=\"1\" colour=\"red\"/><pci busid=\"2\" colour=\"blue\"/>",
       "t.xml:3:1: attribute colour of <pci> is unknown; kept, but not used (2 times)"},
      {"<pci busid=\"1\"><new/></pci>",
       "t.xml:3:16: <new> in <pci> is unknown; kept, but not used"},
      {"hello", "t.xml:2:1: text in <cpu> is unknown; kept, but not used"},
      {"<nic><net speed=\"-1\"/></nic>", "t.xml:3:6: <net speed=\"-1\">: taken as unknown"},
      {"<pci busid=\"1\"/>\n<pci busid=\"1\"/>",
       "t.xml:4:1: <pci busid=\"1\"> occurs twice, first in line 3"},
      {"<pci busid=\"1\" class=\"0x03\" class=\"0x02\"/>",
       "t.xml:3:1: <pci class=\"0x02\">: occurs twice; the first counts"},
  }));
  CHECK(parse_nccl(in_system(text)).notes == std::vector<std::string>{note});
}

TEST_CASE("a broken topology file is an error that says where and why", "[topo]") {
  const auto [text, said] = GENERATE(table<std::string, std::string>({
      {"", "t.xml:1:1: "},
      {"<system", "t.xml:1:"},
      {"\n\n<system version=\"1\"><cpu></system>", "t.xml:3:"},
      {"<graphs/>", "t.xml:1:1: there is no <system>, but <graphs>"},
      {"\n <system version=\"3\"/>", "t.xml:2:2: <system version=\"3\">: 1, NCCL's, and 2, RCCL's"},
      {in_system("") + in_system(""), "t.xml:4:16: a second <system>: files were joined into one"},
      {in_system("<pci/>"), "t.xml:3:1: <pci> has no busid; every device needs one"},
      {in_system("<pci busid=\"1\" class=\"0x03\" link_width=\"-4\"/>"),
       "t.xml:3:1: <pci link_width=\"-4\">: must be a number from 0 to 2147483647"},
      {in_system("<pci busid=\"1\" class=\"0x03\" link_width=\"1e999\"/>"), "must be a number"},
      {in_system(gpu("1", "<nvlink target=\"2\" count=\"nan\"/>")),
       "<nvlink count=\"nan\">: must be a number from 1 to 1024"},
      {in_system(gpu("1", "<c2c count=\"1\"/>")), "<c2c> has no bw"},
      {in_system("<nic><net speed=\"fast\"/></nic>"), "<net speed=\"fast\">: must be a number"},
      {nested(kMaxPciDepth + 1), "<pci> lies more than 32 deep"},
  }));
  CAPTURE(text);
  const std::string message = complaint(ErrorKind::kCorrupt, [&, &t = text] { parse_nccl(t); });
  CHECK(message.find("read topology t.xml:") == 0);
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("numbers that Linux and plugins write without a meaning are read", "[topo]") {
  const auto [width, lanes] = GENERATE(
      table<std::string, int>({{"16", 16}, {"64", 64}, {"63", 0}, {"128", 0}, {"255", 0}}));
  const HostTree host = parse_nccl(
      in_system("<pci busid=\"1\" class=\"0x02\" link_width=\"" + width +
                "\"><nic><net name=\"efa0\" dev=\"0\" maxconn=\"2147483647\"/></nic></pci>"));
  const PartId port = host.all_of(PartKind::kPort)[0];
  CHECK(host[host.find_bus("1")].link.now.lanes == lanes);
  CHECK(host[host.find_bus("1")].link.width_text == width);
  CHECK(info_of<PortInfo>(host[port]).max_connections == 2147483647);
}

TEST_CASE("bus ids are those of a host, of which a file may have several", "[topo]") {
  const std::string node =
      "<cpu numaid=\"0\" host_hash=\"{0}\"><pci busid=\"1\" class=\"0x0302\"><gpu dev=\"0\" "
      "rank=\"{1}\"><nvlink target=\"2\"/></gpu></pci><pci busid=\"2\" class=\"0x0302\"/></cpu>";
  const HostTree host =
      parse_nccl("<system version=\"1\">" + fmt::format(fmt::runtime(node), "0xa", 0) +
                 fmt::format(fmt::runtime(node), "0xb", 1) + "</system>");
  CHECK(host.notes.empty());
  CHECK(count_hosts(host) == 2);
  REQUIRE(host.cross_links().size() == 2);
  for (const CrossLink& link : host.cross_links())
    CHECK(host_hash_of(host, link.from) == host_hash_of(host, link.to));
  CHECK(host.cross_links()[0].to != host.cross_links()[1].to);
}

TEST_CASE("nesting up to the limit is fine", "[topo]") {
  CHECK(parse_nccl(nested(kMaxPciDepth)).parts().size() == size_t(kMaxPciDepth) + 1);
}

TEST_CASE("elements and devices have a limit", "[topo]") {
  std::string devices;
  for (int i = 0; i < 20'000; ++i) devices += gpu(std::to_string(i), "");
  CHECK(complaint(ErrorKind::kConfig, [&] {
          parse_nccl(in_system(devices));
        }).find("16384 parts") != std::string::npos);
  std::string attributes;
  for (int i = 0; i <= kMaxXmlAttributes; ++i) attributes += " a" + std::to_string(i) + "=\"\"";
  CHECK(complaint(ErrorKind::kCorrupt, [&] {
          parse_nccl(in_system("<pci" + attributes + "/>"));
        }).find("t.xml:3:1: an element has more than 256 attributes") != std::string::npos);
  std::string elements;
  for (size_t i = 0; i < kMaxXmlElements; ++i) elements += "<a>";
  CHECK(complaint(ErrorKind::kCorrupt, [&] {
          parse_nccl(elements + ">");
        }).find("262144 elements") == std::string::npos);
  CHECK(complaint(ErrorKind::kCorrupt, [&] {
          parse_nccl(elements + "<a>");
        }).find("262144 elements") != std::string::npos);
}

TEST_CASE("a device that NCCL could not name is not written", "[topo]") {
  HostTree host;
  host.name = "matrix.txt";
  host.source = "nvidia-smi's matrix";
  const PartId node = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{}});
  host.add({.kind = PartKind::kGpu, .above = node, .info = GpuInfo{}});
  CHECK(complaint(ErrorKind::kConfig, [&] { write_nccl_xml(host); }) ==
        "write NCCL XML of matrix.txt: GPU0 has no bus id, which NCCL needs; nvidia-smi's matrix "
        "does not record it");
}

}  // namespace gxp
