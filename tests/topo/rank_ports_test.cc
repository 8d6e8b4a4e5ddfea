#include "lib/topo/nccl/rank_ports.h"

#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/sysfs_host.h"
#include "tests/catch.h"
#include "tests/topo/planted_host.h"

using namespace gxp;

namespace {

// A GPU and mlx5_0 below a switch of node 1, as planted_gpu_host() has them; mlx5_1 at node 0.
PlantedHost two_nics() {
  PlantedHost host = planted_gpu_host();
  const char* const far = "0000:10:00.0/0000:11:00.0";
  host.plant({.path = "0000:10:00.0", .class_code = "0x060400", .vendor = "0x8086", .node = 0});
  host.plant({.path = far, .class_code = "0x020000", .vendor = "0x15b3", .node = 0});
  host.plant_rdma("mlx5_1", far, "400 Gb/sec (4X NDR)");
  return host;
}

std::string names(const HostTree& host, const RankPorts& found) {
  std::string text;
  for (const PartId port : found.ports)
    text += (text.empty() ? "" : ",") + std::get<PortInfo>(host[port].info).name;
  return text;
}

struct Placed {
  explicit Placed(const PlantedHost& planted) : host(read_system(planted.root)) {}
  HostTree host;
  NcclPaths paths{host};
  NcclRoutes routes{paths};
  PartId gpu = host.find_bus(PlantedHost::bus_id_of(kPlantedGpu));
};

}  // namespace

TEST_CASE("a GPU's rank uses the RDMA port that is nearest to the GPU", "[topo][rank_ports]") {
  const Placed placed(two_nics());
  const RankPorts found = ports_of_gpu(placed.routes, placed.gpu);
  CHECK(names(placed.host, found) == "mlx5_0");
  CHECK(found.why == "nearest to GPU0: PIX");
}

TEST_CASE("a port that is down is passed over for the next", "[topo][rank_ports]") {
  PlantedHost planted = two_nics();
  planted.root.add_file(PlantedHost::folder_of(kPlantedNic) + "/infiniband/mlx5_0/ports/1/state",
                        "1: DOWN\n");
  const Placed placed(planted);
  const RankPorts found = ports_of_gpu(placed.routes, placed.gpu);
  CHECK(names(placed.host, found) == "mlx5_1");
  CHECK(found.why == "nearest to GPU0: SYS");
}

TEST_CASE("a rank without a GPU uses the RDMA ports at the NUMA node of its CPUs",
          "[topo][rank_ports]") {
  const Placed placed(two_nics());
  const auto on = [&](const char* list) {
    return ports_of_cpus(placed.host, *CpuSet::parse_list(list));
  };
  CHECK(names(placed.host, on("0-1")) == "mlx5_1");
  CHECK(names(placed.host, on("3")) == "mlx5_0");
  CHECK(on("3").why == "at NUMA1, as CPUs 3 are");
  CHECK(on("0-3").ports.empty());
  CHECK(on("0-3").why == "CPUs 0-3 are not of one NUMA node");
}

TEST_CASE("a device without PCIe has no place", "[topo][rank_ports]") {
  PlantedHost planted(2);
  planted.root.add_file("/sys/devices/virtual/infiniband/rxe0/node_guid", "5054:00ff:fe12:3456\n");
  planted.root.add_file("/sys/devices/virtual/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
  planted.root.add_link("/sys/class/infiniband/rxe0", "../../devices/virtual/infiniband/rxe0");
  const Placed placed(planted);
  CHECK(ports_of_cpus(placed.host, *CpuSet::parse_list("0")).why ==
        "no active RDMA port is at NUMA0");
}

TEST_CASE("what decides on GPUDirect RDMA is the path, then the host's files",
          "[topo][rank_ports][gpu_direct]") {
  PlantedHost planted = two_nics();
  const auto verdict = [&](const char* port) {
    const Placed placed(planted);
    return placed.routes.gpu_direct(placed.gpu, find_part(placed.host, port),
                                    NcclRoutes::Direction::kReceive);
  };
  CHECK(verdict("mlx5_0").answer == RouteAnswer::kUnknown);
  planted.root.add_file("/sys/module/nvidia/refcnt", "0");
  CHECK(verdict("mlx5_0").rule ==
        "neither nvidia-peermem nor DMA-BUF is available (the GPU's driver is not NVIDIA's open "
        "one)");
  planted.root.add_file("/sys/module/nvidia_peermem/refcnt", "0");
  planted.root.add_file("/sys/kernel/mm/memory_peers/nv_mem/version", "1.0");
  CHECK(verdict("mlx5_0").answer == RouteAnswer::kYes);
  CHECK(contains(verdict("mlx5_0").rule, "; by nvidia_peermem, which is registered"));
  CHECK(contains(verdict("mlx5_1").rule, "SYS is beyond P2C"));
}
