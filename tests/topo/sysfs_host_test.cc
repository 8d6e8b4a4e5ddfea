#include "lib/topo/read/sysfs_host.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/nccl/nccl_routes.h"
#include "lib/topo/read/live_host.h"
#include "tests/catch.h"
#include "tests/topo/complaint.h"
#include "tests/topo/planted_host.h"

namespace gxp {
namespace {

bool any_has(const std::vector<std::string>& lines, std::string_view words) {
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

TEST_CASE("one part stands for a switch, and root ports are left out, as in NCCL", "[topo]") {
  const HostTree host = read_system(planted_gpu_host().root);
  const PartId gpu = find_part(host, "GPU0");
  const PartId port = find_part(host, "mlx5_0");
  REQUIRE(gpu != kNoPart);
  REQUIRE(port != kNoPart);
  const PartId upstream = host[gpu].above;
  CHECK(host[upstream].bus_id == "0000:3b:00.0");
  CHECK(host[host[port].above].above == upstream);
  CHECK(host[host[upstream].above].kind == PartKind::kHostBridge);
  CHECK(host.find_bus("0000:3a:00.0") == kNoPart);
  const PartId node = host.find_above(gpu, PartKind::kNumaNode);
  CHECK(std::get<NumaNodeInfo>(host[node].info).number == 1);
}

TEST_CASE("a recorded GPU's id and name decide on GPUDirect RDMA", "[topo]") {
  const auto [device, name, receive, send, flush] =
      GENERATE(table<std::string, std::string, RouteAnswer, RouteAnswer, RouteAnswer>({
          {"0x2330", "NVIDIA H100 80GB HBM3", RouteAnswer::kYes, RouteAnswer::kYes,
           RouteAnswer::kNo},
          {"0x2330", "", RouteAnswer::kYes, RouteAnswer::kYes, RouteAnswer::kNo},
          {"0x20b2", "", RouteAnswer::kYes, RouteAnswer::kYes, RouteAnswer::kYes},
          {"0x2230", "NVIDIA RTX A6000", RouteAnswer::kYes, RouteAnswer::kYes, RouteAnswer::kYes},
          {"0x2684", "NVIDIA GeForce RTX 4090", RouteAnswer::kNo, RouteAnswer::kNo,
           RouteAnswer::kYes},
          {"0x1e02", "NVIDIA TITAN RTX", RouteAnswer::kNo, RouteAnswer::kNo, RouteAnswer::kYes},
      }));
  PlantedHost planted = planted_gpu_host();
  RecordedRoot& root = planted.root;
  root.add_file(PlantedHost::folder_of(kPlantedGpu) + "/device", device + "\n");
  const std::string bus_id = PlantedHost::bus_id_of(kPlantedGpu);
  root.add_file("/proc/driver/nvidia/gpus/" + bus_id + "/information",
                "Model: \t\t " + name + "\nGPU UUID: \t GPU-8932f937\n");
  root.add_file("/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.42\n");
  root.add_file("/proc/sys/kernel/osrelease", "6.8.0\n");
  root.add_file("/sys/module/nvidia/version", "555.42\n");
  const HostTree host = read_system(root);
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  const PartId gpu = find_part(host, "GPU0");
  const PartId port = find_part(host, "mlx5_0");
  CAPTURE(device, name);
  CHECK(routes.gpu_direct(gpu, port, NcclRoutes::Direction::kReceive).answer == receive);
  CHECK(routes.gpu_direct(gpu, port, NcclRoutes::Direction::kSend).answer == send);
  CHECK(routes.needs_flush(gpu, port).answer == flush);
  CHECK(info_of<GpuInfo>(host[gpu]).uuid == "GPU-8932f937");
}

TEST_CASE("a GPU in MIG devices has no peer-to-peer", "[topo]") {
  const auto [slice, answer] = GENERATE(
      table<std::string, RouteAnswer>({{"gi1", RouteAnswer::kNo}, {"config", RouteAnswer::kYes}}));
  PlantedHost planted = planted_gpu_host();
  planted.plant({.path = "0000:3a:00.0/0000:3b:00.0/0000:3c:10.0/0000:3f:00.0",
                 .class_code = "0x030200",
                 .vendor = "0x10de",
                 .node = 1});
  planted.root.add_file("/proc/driver/nvidia/gpus/0000:3f:00.0/information",
                        "Model: \t A100\nDevice Minor: \t 1\n");
  planted.root.add_file("/proc/driver/nvidia/capabilities/gpu1/mig/" + slice + "/access", "");
  const HostTree host = read_system(planted.root);
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  REQUIRE(paths.gpus().size() == 2);
  for (const int from : {0, 1}) {
    const PartId gpu = paths.gpus()[size_t(from)];
    const PartId other = paths.gpus()[size_t(1 - from)];
    CHECK(routes.peer_to_peer(gpu, other).answer == answer);
    CHECK((routes.find(gpu, other).via != kNoPart) == (answer == RouteAnswer::kNo));
  }
}

TEST_CASE("an RDMA device's port says all, and its interface is not shown twice", "[topo]") {
  const HostTree host = read_system(planted_gpu_host().root);
  const std::vector<PartId> ports = host.all_of(PartKind::kPort);
  REQUIRE(ports.size() == 1);
  const auto& port = std::get<PortInfo>(host[ports[0]].info);
  CHECK(port.name == "mlx5_0");
  CHECK(port.interface == "ens3");
  CHECK(port.mbit_per_s == 400000);
  CHECK(port.guid == "0xb8599f0300c45d68");
  CHECK(port.state == "active");
}

TEST_CASE("NUMA nodes have the CPUs, caches and memory that /sys tells", "[topo]") {
  PlantedHost planted;
  for (const int cpu : {2, 3}) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index0/", cpu);
    for (const auto& [name, value] :
         {std::pair{"level", "3"}, {"size", "48K"}, {"type", "Unified"}, {"shared_cpu_map", "c"}})
      planted.root.add_file(folder + name, value);
  }
  const HostTree host = read_system(planted.root);
  REQUIRE(host.roots().size() == 2);
  const auto& node = std::get<NumaNodeInfo>(host[host.roots()[1]].info);
  CHECK(node.cores == 2);
  CHECK(node.package == 1);
  CHECK(node.affinity == "0000000c");
  CHECK(node.memory_bytes == 1u << 30);
  CHECK(node.model == 143);
  REQUIRE(node.caches.size() == 1);
  CHECK(node.caches[0].bytes == 48 << 10);
  CHECK(node.caches[0].count == 1);
}

TEST_CASE("a link can do what the weaker of its ends can", "[topo]") {
  PlantedHost planted = planted_gpu_host();
  const std::string port = PlantedHost::folder_of("0000:3a:00.0/0000:3b:00.0/0000:3c:00.0");
  planted.root.add_file(port + "/max_link_speed", "16.0 GT/s PCIe\n");
  planted.root.add_file(port + "/max_link_width", "8\n");
  const HostTree host = read_system(planted.root);
  const PcieLink& link = host[find_part(host, "GPU0")].link;
  CHECK(link.most.gt_per_s == 16);
  CHECK(link.most.lanes == 8);
  CHECK(link.speed_text == "16.0 GT/s PCIe");
  CHECK(link.now.gt_per_s == 32);
}

TEST_CASE("a PCIe root of no NUMA node lies where its CPUs are, or a note says that none knows",
          "[topo]") {
  PlantedHost planted;
  planted.plant({.path = "0000:00:01.0", .class_code = "0x020000", .vendor = "0x8086", .node = -1});
  const bool known = GENERATE(true, false);
  planted.root.add_file(PlantedHost::folder_of("0000:00:01.0") + "/local_cpus", known ? "c" : "f");
  const HostTree host = read_system(planted.root);
  const PartId node = host.find_above(host.find_bus("0000:00:01.0"), PartKind::kNumaNode);
  CHECK(std::get<NumaNodeInfo>(host[node].info).number == (known ? 1 : 0));
  CHECK(any_has(host.notes, "does not report to which NUMA node PCIe root 0000:00") == !known);
}

TEST_CASE("CPUs that are online in no NUMA node are noted", "[topo]") {
  PlantedHost planted(2);
  CHECK(read_system(planted.root).notes.empty());
  planted.root.add_file("/sys/devices/system/cpu/online", "0-5,9");
  CHECK(read_system(planted.root).notes.front().starts_with("CPUs 4-5,9 are online and"));
}

TEST_CASE("what a host lacks is told with what that costs", "[topo]") {
  const HostTree host = read_system(PlantedHost(1).root);
  CHECK(any_has(host.absent, "no GPUs on PCIe"));
  CHECK(any_has(host.absent, "no RDMA devices"));
  CHECK(any_has(host.absent, "no PCIe devices in /sys"));
  const HostTree full = read_system(planted_gpu_host().root);
  CHECK(full.absent.empty());
  CHECK(full.notes.empty());
}

TEST_CASE("a root without CPUs is refused", "[topo]") {
  const auto read = [] { read_system(RecordedRoot()); };
  CHECK(complaint(ErrorKind::kUnavailable, read).find("is /sys mounted?") != std::string::npos);
}

TEST_CASE("this host has CPUs and memory", "[topo]") {
  const HostTree host = probe_host();
  REQUIRE_FALSE(host.roots().empty());
  const auto& node = std::get<NumaNodeInfo>(host[host.roots()[0]].info);
  CHECK(node.threads >= 1);
  CHECK(node.cores <= node.threads);
  CHECK(node.memory_bytes > 0);
  CHECK_FALSE(node.architecture.empty());
}

}  // namespace
}  // namespace gxp
