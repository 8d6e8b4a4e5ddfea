#include "lib/topo/nccl/nccl_routes.h"

#include <fmt/format.h>

#include "lib/base/text_file.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/read/xml_text.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using Direction = NcclRoutes::Direction;

HostTree oci_h100() {
  const std::string file = std::string(GXP_TEST_DATA) + "/topo/oci-H100-topology.xml";
  return read_nccl_xml(read_text_file(file, kMaxXmlBytes), file);
}

std::string gpu(int number, int sm, int gdr) {
  return fmt::format(R"(<pci busid="0000:0{}:00.0" class="0x030200" link_speed="16 GT/s" )"
                     R"(link_width="16"><gpu dev="{}" rank="{}" sm="{}" gdr="{}"/></pci>)",
                     number + 1, number, number, sm, gdr);
}

std::string nic(int gdr) {
  return fmt::format(R"(<pci busid="0000:20:00.0" class="0x020700" link_speed="16 GT/s" )"
                     R"(link_width="16"><nic><net name="mlx5_0" dev="0" speed="200000" )"
                     R"(gdr="{}"/></nic></pci>)",
                     gdr);
}

// One switch with the NIC; all GPUs below it.
HostTree switch_host(int gpus, int sm, int gpu_gdr = 1, int nic_gdr = 1) {
  std::string inside = nic(nic_gdr);
  for (int i = 0; i < gpus; ++i) inside += gpu(i, sm, gpu_gdr);
  return read_nccl_xml(
      R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" )"
      R"(modelid="143"><pci busid="0000:10:00.0" class="0x060400" link_speed="16 GT/s" )"
      R"(link_width="16">)" +
          inside + "</pci></cpu></system>",
      "t.xml");
}

// Two GPUs, each at a NUMA node's own root.
HostTree two_sockets(const std::string& vendor) {
  const auto cpu = [&](int number) {
    return fmt::format(R"(<cpu numaid="{}" arch="x86_64" vendor="{}" familyid="6" modelid="85">)"
                       "{}</cpu>",
                       number, vendor, gpu(number, 80, 1));
  };
  return read_nccl_xml(R"(<system version="1">)" + cpu(0) + cpu(1) + "</system>", "t.xml");
}

}  // namespace

TEST_CASE("a far NIC is reached through the GPU next to it", "[topo]") {
  const HostTree host = oci_h100();
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  const PartId gpu0 = find_part(host, "GPU0");
  const NcclRoute near = routes.find(gpu0, find_part(host, "mlx5_0"));
  CHECK(near.type == PathType::kPix);
  CHECK(near.via == kNoPart);
  const NcclRoute far = routes.find(gpu0, find_part(host, "mlx5_13"));
  CHECK(far.type == PathType::kPxn);
  CHECK(far.via == find_part(host, "GPU5"));
  CHECK(far.gb_per_s == 22.5);
  // Received data comes to the GPU next to the NIC; the way back stays as wired.
  CHECK(routes.find(find_part(host, "mlx5_13"), gpu0).type == PathType::kSys);
  const NcclRoutes without(paths, {.pxn_disable = true});
  CHECK(without.find(gpu0, find_part(host, "mlx5_13")).type == PathType::kSys);
  CHECK(routes.path(gpu0, find_part(host, "mlx5_13")).hops.size() == 5);
}

TEST_CASE("peer-to-peer is as far as the level, the processor and NVML let it", "[topo]") {
  const auto allowed = [](const std::string& vendor, const NcclSettings& settings,
                          NvmlP2p nvml = NvmlP2p::kOk) {
    const HostTree host = two_sockets(vendor);
    const NcclPaths paths(host);
    const NcclRoutes routes(paths, settings);
    const bool is_diverted = routes.find(paths.gpus()[0], paths.gpus()[1]).via != kNoPart;
    const RouteVerdict verdict = routes.peer_to_peer(paths.gpus()[0], paths.gpus()[1], nvml);
    CHECK((nvml == NvmlP2p::kDisabled || is_diverted == (verdict.answer == RouteAnswer::kNo)));
    return verdict.answer == RouteAnswer::kYes;
  };
  CHECK_FALSE(allowed("GenuineIntel", {}));
  CHECK(allowed("AuthenticAMD", {}));
  CHECK_FALSE(allowed("AuthenticAMD", {}, NvmlP2p::kDisabled));
  CHECK(allowed("GenuineIntel", {.p2p_level = parse_nccl_level("SYS")}));
  CHECK_FALSE(allowed("GenuineIntel", {.p2p_level = parse_nccl_level("3")}));
  CHECK_FALSE(allowed("AuthenticAMD", {.p2p_disable = true}));
  CHECK(parse_nccl_level("9") == PathType::kSys);
  CHECK_FALSE(parse_nccl_level("NET").has_value());
  CHECK_FALSE(parse_nccl_level("near").has_value());
}

TEST_CASE("NCCL's variables are taken as NCCL takes them, or refused", "[topo]") {
  NcclSettings settings;
  set_nccl_variable(settings, "NCCL_P2P_LEVEL", "PHB");
  set_nccl_variable(settings, "NCCL_PXN_DISABLE", "1");
  CHECK(settings.p2p_level == PathType::kPhb);
  CHECK(settings.pxn_disable);
  CHECK_THROWS_WITH(set_nccl_variable(settings, "NCCL_P2P_LEVEL", "near"),
                    Catch::Contains("must be LOC"));
  CHECK_THROWS_WITH(set_nccl_variable(settings, "NCCL_PXN_DISABLE", "yes"),
                    Catch::Contains("must be 0 or 1"));
  CHECK_THROWS_WITH(set_nccl_variable(settings, "NCCL_DEBUG", "1"),
                    Catch::Contains("set NCCL_DEBUG"));
}

TEST_CASE("GPUDirect RDMA needs both to offer it, nearness and a GPU that may be read", "[topo]") {
  struct Case {
    int gpus, sm, gpu_gdr, nic_gdr;
    NcclSettings settings;
    RouteAnswer receive, send;
  };
  const auto yes = RouteAnswer::kYes;
  const auto no = RouteAnswer::kNo;
  const Case c = GENERATE_COPY(Case{2, 80, 1, 1, {}, yes, yes}, Case{2, 80, 0, 1, {}, no, no},
                               Case{2, 80, 1, 0, {}, no, no}, Case{2, 70, 1, 1, {}, yes, no},
                               Case{1, 70, 1, 1, {}, yes, yes},
                               Case{2, 70, 1, 1, {.gdr_read = true}, yes, yes},
                               Case{2, 90, 1, 1, {.gdr_read = false}, yes, no},
                               Case{2, 90, 1, 1, {.gdr_level = PathType::kLoc}, no, no});
  const HostTree host = switch_host(c.gpus, c.sm, c.gpu_gdr, c.nic_gdr);
  const NcclPaths paths(host);
  const NcclRoutes routes(paths, c.settings);
  const PartId gpu = paths.gpus()[0];
  const PartId port = paths.ports()[0];
  CHECK(routes.gpu_direct(gpu, port, Direction::kReceive).answer == c.receive);
  CHECK(routes.gpu_direct(gpu, port, Direction::kSend).answer == c.send);
  // Without it NCCL goes through the processor's memory.
  CHECK(routes.find(gpu, port).type == (c.receive == no ? PathType::kPhb : PathType::kPix));
}

TEST_CASE("received data is flushed before Hopper", "[topo]") {
  const auto [sm, answer] =
      GENERATE(table<int, RouteAnswer>({{80, RouteAnswer::kYes}, {90, RouteAnswer::kNo}}));
  const HostTree host = switch_host(1, sm);
  const NcclPaths paths(host);
  CHECK(NcclRoutes(paths).needs_flush(paths.gpus()[0], paths.ports()[0]).answer == answer);
}

TEST_CASE("where PCIe and a chip-to-chip link meet, the nearest NIC is P2C", "[topo]") {
  const std::string c2c = R"(<c2c bw="28124" count="16"/>)";
  std::string gpu0 = gpu(0, 90, 1);
  gpu0.replace(gpu0.find("/></pci>"), 2, ">" + c2c + "</gpu>");
  const HostTree host = read_nccl_xml(
      R"(<system version="1"><cpu numaid="0" arch="arm64">)" + gpu0 + nic(1) + "</cpu></system>",
      "t.xml");
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  CHECK(paths.find(paths.gpus()[0], paths.ports()[0]).type == PathType::kPhb);
  CHECK(routes.find(paths.gpus()[0], paths.ports()[0]).type == PathType::kP2c);
  CHECK(routes.gpu_direct(paths.gpus()[0], paths.ports()[0], Direction::kSend).answer ==
        RouteAnswer::kYes);
}

}  // namespace gxp
