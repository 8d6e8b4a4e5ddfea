#include "lib/topo/nccl/nccl_paths.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const std::string kPathsData = std::string(GXP_TEST_DATA) + "/topo/";

std::vector<std::string> types_between(const NcclPaths& paths, const std::vector<PartId>& from,
                                       const std::vector<PartId>& to) {
  std::vector<std::string> rows;
  for (const PartId a : from) {
    std::vector<std::string_view> types;
    for (const PartId b : to) types.push_back(to_string(paths.find(a, b).type));
    rows.push_back(fmt::format("{}", fmt::join(types, " ")));
  }
  return rows;
}

std::string gpu_at(std::string_view bus, std::string_view inside,
                   std::string_view attributes = "") {
  return fmt::format(
      R"(<pci busid="0000:{}:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">)"
      R"(<gpu dev="{}" sm="80" {}>{}</gpu></pci>)",
      bus, bus[1], attributes, inside);
}

std::string nvlink(std::string_view bus, int count) {
  return fmt::format(R"(<nvlink target="0000:{}:00.0" count="{}" tclass="0x030200"/>)", bus, count);
}

HostTree host_of(std::string_view inside) {
  return read_nccl_xml(fmt::format(R"(<system version="1"><cpu numaid="0" arch="x86_64" )"
                                   R"(vendor="AuthenticAMD">{}</cpu></system>)",
                                   inside),
                       "t.xml");
}

std::string bridge(std::string_view bus, std::string_view subsystem_device,
                   std::string_view inside) {
  return fmt::format(
      R"(<pci busid="0000:{}:00.0" class="0x060400" vendor="0x1000" device="0xc030" )"
      R"(subsystem_vendor="0x1000" subsystem_device="{}" link_speed="5.0 GT/s PCIe" )"
      R"(link_width="16">{}</pci>)",
      bus, subsystem_device, inside);
}

}  // namespace

TEST_CASE("path types are those that NCCL's rules give", "[topo]") {
  const std::string name =
      GENERATE("aws-p4d-24xl-topo", "azure-ncv4-topo", "azure-ndv4-topo", "oci-H100-topology",
               "oci-topo-flattened", "rccl-topo_4p3l_n4", "rccl-topo_8p6l", "rccl-topo_8p_940");
  CAPTURE(name);
  const HostTree host =
      read_nccl_xml(read_text_file(kPathsData + name + ".xml", kMaxXmlBytes), name);
  const auto expected = nlohmann::json::parse(
      read_text_file(kPathsData + "expected/" + name + ".json", kMaxXmlBytes));
  const NcclPaths paths(host);
  std::vector<std::string> bus_ids;
  for (const PartId part : paths.gpus()) bus_ids.push_back(host[part].bus_id);
  CHECK(bus_ids == expected["gpus"].get<std::vector<std::string>>());
  CHECK(types_between(paths, paths.gpus(), paths.gpus()) ==
        expected["gpu_gpu"].get<std::vector<std::string>>());
  CHECK(types_between(paths, paths.gpus(), paths.ports()) ==
        expected["gpu_net"].get<std::vector<std::string>>());
}

TEST_CASE("a path says its hops, its bandwidth and what limits it", "[topo]") {
  const std::string file = kPathsData + "oci-H100-topology.xml";
  const HostTree host = read_nccl_xml(read_text_file(file, kMaxXmlBytes), file);
  const NcclPaths paths(host);
  // Over one switch, whose lower bridges are taken out, to a port of 180 Gbit/s.
  const NcclPath near = paths.find(find_part(host, "GPU0"), find_part(host, "mlx5_0"));
  CHECK(near.gb_per_s == 22.5);
  CHECK(near.hops.size() == 3);
  CHECK(near.limiting_hop() == 2);
  // The switch hangs on 5 GT/s x 16: 6 GB/s to NCCL, 8 with 8b/10b.
  const NcclPath far = paths.find(find_part(host, "GPU0"), find_part(host, "mlx5_3"));
  CHECK(far.gb_per_s == 6);
  CHECK(far.limiting_hop() == 1);
  CHECK(far.physical_gb_per_s() == 8);
  CHECK(far.hops.size() == 5);
  CHECK(paths.find(find_part(host, "GPU0"), find_part(host, "GPU7")).gb_per_s == Approx(18 * 20.6));
}

TEST_CASE("a GPU relays NVLink once, and only where that is nearer", "[topo]") {
  const HostTree host =
      host_of(gpu_at("01", nvlink("02", 2)) + gpu_at("02", nvlink("01", 2) + nvlink("03", 1)) +
              gpu_at("03", nvlink("02", 1) + nvlink("04", 4)) + gpu_at("04", nvlink("03", 4)));
  const NcclPaths paths(host);
  CHECK(types_between(paths, {paths.gpus()[0]}, paths.gpus()) ==
        std::vector<std::string>{"LOC NVL NVB PHB"});
  CHECK(paths.find(paths.gpus()[0], paths.gpus()[2]).gb_per_s == 20);
  CHECK(paths.find(paths.gpus()[0], paths.gpus()[2]).hops[0].to == paths.gpus()[1]);
}

TEST_CASE("two levels of a Broadcom switch are one, others are two", "[topo]") {
  const auto [upper, lower, type] = GENERATE(table<std::string, std::string, std::string>(
      {{"0x0072", "0x1003", "PIX"}, {"0x0072", "0x0072", "PXB"}, {"0x1003", "0x1003", "PXB"}}));
  CAPTURE(upper, lower);
  const HostTree host = host_of(bridge(
      "10", upper, bridge("11", lower, gpu_at("01", "")) + bridge("12", lower, gpu_at("02", ""))));
  const NcclPaths paths(host);
  CHECK(to_string(paths.find(paths.gpus()[0], paths.gpus()[1]).type) == type);
}

TEST_CASE("what NCCL leaves out or stops at is told", "[topo]") {
  const HostTree host = host_of(gpu_at("01", nvlink("02", 1) + nvlink("01", 1), R"(rank="0")") +
                                gpu_at("02", nvlink("09", 1), R"(rank="1")") + gpu_at("03", ""));
  const NcclPaths paths(host);
  CHECK(paths.gpus().size() == 2);
  CHECK(paths.find(paths.gpus()[0], find_part(host, "0000:03:00.0")).type == PathType::kDis);
  CHECK(paths.graph().notes ==
        std::vector<std::string>{
            "NCCL leaves GPU3 out: it has no rank, and others have one",
            "the NVLink of GPU2 to 0000:09:00.0 leads to no device known to NCCL",
            "GPU1 lists a link to GPU2, which lists none back: NCCL stops there with \"Failed to "
            "find reverse path\""});
}

TEST_CASE("a host of more ends than NCCL has is refused", "[topo]") {
  HostTree host;
  const PartId node = host.add({.kind = PartKind::kNumaNode, .info = NumaNodeInfo{}});
  for (size_t i = 0; i < NcclPaths::kMaxEnds; ++i)
    host.add({.kind = PartKind::kGpu, .above = node, .info = GpuInfo{}});
  CHECK_THROWS_WITH(NcclPaths(host), Catch::Contains("1025 GPUs, ports and NUMA nodes"));
}

}  // namespace gxp
