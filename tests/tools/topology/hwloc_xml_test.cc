#include "lib/tools/topology/read/hwloc_xml.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/topo/model/cpu_set.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"
#include "tests/unpacked.h"

namespace gxp {
namespace {

const std::string kHwlocData = std::string(GXP_TEST_DATA) + "/topo/hwloc/";

std::string describe_cpus(const NumaNodeInfo& node) {
  std::string text =
      fmt::format("node {}: {} cores, {} threads of {}, package {}, {} bytes,",
                  node.number.value_or(-1), node.cores, node.threads,
                  CpuSet::parse_map(node.affinity)->to_list(), node.package, node.memory_bytes);
  for (const CacheInfo& cache : node.caches)
    text += fmt::format(" L{} {} x {}", cache.level, cache.bytes, cache.count);
  return text;
}

std::vector<std::string> describe_nodes(const HostTree& host) {
  std::vector<std::string> lines;
  for (const PartId id : host.all_of(PartKind::kNumaNode))
    lines.push_back(describe_cpus(std::get<NumaNodeInfo>(host[id].info)));
  return lines;
}

// A line for each part but the NUMA nodes and each link outside the tree.
std::vector<std::string> describe_devices(const HostTree& host) {
  const std::vector<std::string> names = names_of_parts(host);
  std::vector<std::string> lines;
  for (PartId id = 0; id < names.size(); ++id) {
    const Part& part = host[id];
    if (part.kind == PartKind::kNumaNode) continue;
    const auto* const gpu = std::get_if<GpuInfo>(&part.info);
    lines.push_back(fmt::format("{} below {}: {} {} GT/s x{}, {} bytes", names[id],
                                names[part.above], part.bus_id, part.link.now.gt_per_s,
                                part.link.now.lanes, gpu == nullptr ? 0 : gpu->memory_bytes));
  }
  for (const CrossLink& link : host.cross_links())
    lines.push_back(
        fmt::format("{} to {}: {} GB/s", names[link.from], names[link.to], link.gb_per_s));
  return lines;
}

std::vector<std::string> bus_ids(const HostTree& host, PartKind kind) {
  std::vector<std::string> ids;
  for (const PartId id : host.all_of(kind)) ids.push_back(host[id].bus_id);
  std::ranges::sort(ids);
  return ids;
}

std::string hwloc_complaint_of(const std::string& text) {
  return complaint(ErrorKind::kCorrupt, [&] { read_hwloc_xml(text, "a.xml"); });
}

}  // namespace

TEST_CASE("versions 2 and 3 of hwloc's XML say the same", "[topo][hwloc]") {
  const std::string file = GENERATE("24em64t-2n6c2t-pci.xml", "power8gpudistances.xml");
  CAPTURE(file);
  const HostTree second = load_host(kHwlocData + file),
                 third = load_host(kHwlocData + "v3/" + file);
  CHECK(second.source == "hwloc XML, version 2");
  CHECK(third.source == "hwloc XML, version 3");
  CHECK(describe_nodes(second) == describe_nodes(third));
  CHECK(describe_devices(second) == describe_devices(third));
  CHECK(second.all_of(PartKind::kGpu).size() == (file[0] == '2' ? 3 : 4));
}

// hwloc's own reading of the same files is the oracle.
TEST_CASE("from a recorded root gxp reads what hwloc reads", "[topo][hwloc]") {
  const std::string host = GENERATE("nvidia-dgx-gb10", "40intel64-2g2n4c+pcilocality");
  CAPTURE(host);
  const HostTree ours = load_host(Unpacked(kHwlocData + host + ".tar.gz").path());
  const HostTree theirs = load_host(kHwlocData + "v3/" + host + ".xml");
  CHECK(describe_nodes(ours) == describe_nodes(theirs));
  for (const PartKind kind : {PartKind::kNic, PartKind::kPcieDevice, PartKind::kGpu})
    CHECK(bus_ids(ours, kind) == bus_ids(theirs, kind));
}

TEST_CASE("PCIe domains of more than 16 bits are kept", "[topo]") {
  const HostTree host = load_host(Unpacked(kHwlocData + "2pa-pcidomain32bits.tar.gz").path());
  CHECK(find_part(host, "10000:00:04.0") != kNoPart);
  CHECK(host.name == "hwloc-debian9amd64");
}

TEST_CASE("what was read is written as NCCL's XML, and read again as the same", "[topo][hwloc]") {
  const std::string file =
      GENERATE("24em64t-2n6c2t-pci.xml", "v3/power8gpudistances.xml", "2pa-pcidomain32bits.tar.gz",
               "40intel64-2g2n4c+pcilocality.tar.gz", "v3/nvidia-dgx-gb10.xml");
  CAPTURE(file);
  const HostTree host = file.ends_with(".xml") ? load_host(kHwlocData + file)
                                               : load_host(Unpacked(kHwlocData + file).path());
  const HostTree again = read_nccl_xml(write_nccl_xml(host), "written");
  for (const PartKind kind : {PartKind::kGpu, PartKind::kNic})
    CHECK(bus_ids(again, kind) == bus_ids(host, kind));
  CHECK(again.cross_links().size() == host.cross_links().size());
}

TEST_CASE("NVLinks of a matrix lead to GPUs and to their CPUs", "[topo][hwloc]") {
  const HostTree host = load_host(kHwlocData + "power8gpudistances.xml");
  const std::vector<std::string> lines = describe_devices(host);
  CHECK(host.cross_links().size() == 8);
  for (const char* const line : {"GPU0 to GPU1: 40 GB/s", "GPU3 to GPU2: 40 GB/s",
                                 "GPU0 to NUMA0: 40 GB/s", "GPU3 to NUMA1: 40 GB/s"})
    CHECK(std::ranges::find(lines, line) != lines.end());
}

TEST_CASE("GB/s of a link are a rate and lanes", "[topo][hwloc]") {
  const auto [gb_per_s, gt_per_s, lanes] = GENERATE(table<double, double, int>({
      {0.25, 2.5, 1},
      {4, 2.5, 16},
      {8, 5, 16},
      {3.938462, 8, 4},
      {15.753846, 8, 16},
      {31.507692, 16, 16},
      {63.015385, 32, 16},
      {121, 64, 16},
      {0.4, 0, 0},
  }));
  CAPTURE(gb_per_s);
  CHECK(pcie_rate_of(gb_per_s).gt_per_s == gt_per_s);
  CHECK(pcie_rate_of(gb_per_s).lanes == lanes);
}

TEST_CASE("what hwloc would not write is refused where it stands", "[topo][hwloc]") {
  const std::string machine =
      "<topology version=\"2.0\">\n<object type=\"Machine\" cpuset=\"0x1\">"
      "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\"/>";
  const auto [text, said] = GENERATE_COPY(table<std::string, std::string>({
      {"<topology version=\"4.0\"/>", "1:1: <topology version=\"4.0\">: versions 1 to 3"},
      {"<topology version=\"\"/>", "1:1: <topology version=\"\">: versions 1 to 3 are known"},
      {"<topology version=\"2.0\"/>", "1:1: it has no object of type Machine"},
      {"<topology version=\"2.0\"><object type=\"Machine\"/></topology>",
       "1:25: the machine has no NUMA node"},
      {machine + "<object type=\"PU\" cpuset=\"0y\"/></object></topology>",
       "<object cpuset=\"0y\">: must be words of 32 bits"},
      {machine + "<object type=\"PCIDev\" pci_busid=\"1:2\"/></object></topology>",
       "must be as 0000:3b:00.0"},
      {machine + "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\"/></object></topology>",
       "<object pci_type=\"\">: must be as"},
      {machine + "</object><distances2 name=\"NVLinkBandwidth\" nbobjs=\"2\"/></topology>",
       "2:97: a matrix of 2 objects has 0 indexes and 0 values"},
      {machine, "a.xml:"},
  }));
  const std::string message = hwloc_complaint_of(text);
  CAPTURE(text, message);
  CHECK(message.starts_with("read topology a.xml:"));
  CHECK(message.find(said) != std::string::npos);
}

TEST_CASE("version 1 of hwloc's XML says the same in its own words", "[topo][hwloc]") {
  const std::string thread =
      "<object type=\"Core\" cpuset=\"{0}\"><object type=\"PU\" cpuset=\"{0}\"/></object>";
  const std::string device =
      "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[00-02]\"><object "
      "type=\"PCIDev\" "
      "pci_busid=\"0000:01:00.0\" pci_type=\"0200 [15b3:1013] [15b3:0008] 00\" "
      "pci_link_speed=\"15.753846\"><object type=\"OSDev\" name=\"eth0\" "
      "osdev_type=\"2\"/></object>"
      "</object>";
  const auto machine = [](const std::string& version, const std::string& inside) {
    return fmt::format(
        "<topology{}><object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" "
        "local_memory=\"4096\">{}</object></topology>",
        version, inside);
  };
  const std::string first = fmt::format(fmt::runtime(thread), "0x1"),
                    second = fmt::format(fmt::runtime(thread), "0x2");
  const std::string cache = "cpuset=\"0x3\" depth=\"3\" cache_size=\"1024\" cache_type=\"0\">";
  const auto package = [&](const char* type, const char* cache_type) {
    return fmt::format(
        "<object type=\"{}\" os_index=\"0\" cpuset=\"0x3\"><object type=\"{}\" "
        "{}{}{}</object></object>{}",
        type, cache_type, cache, first, second, device);
  };
  const std::string node =
      "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\" local_memory=\"4096\">";
  const HostTree newer = read_hwloc_xml(
      machine(" version=\"2.0\"", node + "</object>" + package("Package", "L3Cache")), "a.xml");
  const HostTree older = read_hwloc_xml(
      GENERATE_COPY(machine("", package("Socket", "Cache")),
                    machine("", node + package("Package", "Cache") + "</object>"),
                    "<topology>" + node + package("Package", "Cache") + "</object></topology>"),
      "a.xml");
  CHECK(describe_nodes(older) == describe_nodes(newer));
  CHECK(describe_devices(older) == describe_devices(newer));
  CHECK(older.all_of(PartKind::kPort).size() == 1);
}

TEST_CASE("threads of no NUMA node are noted", "[topo][hwloc]") {
  const HostTree host = read_hwloc_xml(
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"3\"><object type=\"NUMANode\" "
      "os_index=\"0\" cpuset=\"1\"/><object type=\"PU\" cpuset=\"1\"/><object type=\"PU\" "
      "cpuset=\"2\"/></object></topology>",
      "a.xml");
  REQUIRE(host.notes.size() == 1);
  CHECK(host.notes[0].find("1 of 2 threads are in no NUMA node") != std::string::npos);
}

TEST_CASE("an AMD display that runs programs is a GPU", "[topo][hwloc]") {
  const auto [device, gpus] = GENERATE(table<std::string, size_t>(
      {{"opencl0d1", 1}, {"rsmi0", 1}, {"card0", 0}, {"renderD128", 0}}));
  const HostTree host = read_hwloc_xml(
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"1\"><object type=\"NUMANode\" "
      "os_index=\"0\" cpuset=\"1\"/><object type=\"PCIDev\" pci_busid=\"0000:13:00.0\" "
      "pci_type=\"0300 [1002:6860] [1002:0c35] 01\"><object type=\"OSDev\" osdev_type=\"5\" "
      "name=\"" +
          device + "\"/></object></object></topology>",
      "a.xml");
  CHECK(host.all_of(PartKind::kGpu).size() == gpus);
}

TEST_CASE("speeds that no PCIe link has are noted once each", "[topo][hwloc]") {
  std::string text =
      "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"1\"><object type=\"NUMANode\" "
      "os_index=\"0\" cpuset=\"1\"/>\n";
  for (const char* const speed : {"31.0", "0.1", "31.0"}) {
    text += fmt::format(
        "<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" "
        "pci_type=\"0200 [15b3:1013] [15b3:0008] 00\" pci_link_speed=\"{}\"/>\n",
        speed);
  }
  CHECK(read_hwloc_xml(text + "</object></topology>", "a.xml").notes ==
        std::vector<std::string>{
            "a.xml:3:1: no PCIe link has 0.1 GB/s; unknown",
            "a.xml:2:1: no PCIe link has 31 GB/s, which 2 functions have; unknown"});
}

TEST_CASE("objects that lie too deep are refused", "[topo][hwloc]") {
  std::string text = "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"1\">";
  for (int i = 0; i < 100'000; ++i) text += "<object type=\"Group\" cpuset=\"1\">";
  for (int i = 0; i < 100'000; ++i) text += "</object>";
  CHECK(hwloc_complaint_of(text + "</object></topology>").find("more than 64 deep") !=
        std::string::npos);
}

TEST_CASE("an object of an unknown type is passed over and noted", "[topo][hwloc]") {
  const HostTree host = read_hwloc_xml(
      "<topology version=\"3.0\"><object type=\"Machine\" cpuset=\"1\"><object type=\"Qubit\" "
      "cpuset=\"1\"/><object type=\"NUMANode\" os_index=\"0\" cpuset=\"1\"/></object></topology>",
      "a.xml");
  REQUIRE(host.notes.size() == 1);
  CHECK(host.notes[0] == "a.xml:1:59: objects of type \"Qubit\" are unknown; ignored");
}

}  // namespace gxp
