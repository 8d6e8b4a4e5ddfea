#include "lib/tools/topology/model/host.h"

#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"

namespace gxp {
namespace {

RegularHost eight_gpus(int nics, int numa_nodes) {
  return {.gpus = 8,
          .nics = nics,
          .numa_nodes = numa_nodes,
          .pcie_gb_per_s = 48,
          .nvlink_gb_per_s = 370,
          .inter_numa_gb_per_s = 22,
          .latencies = {}};
}

Path path_between(const HostTopology& host, VertexId from, VertexId to) {
  return find_paths(host.graph, from, {&to, 1})[0];
}

}  // namespace

TEST_CASE("GPUs of a regular host reach each other over the NVSwitch, NICs over PCIe", "[topo]") {
  const HostTopology host = make_host(eight_gpus(8, 2));
  CHECK(path_between(host, host.gpus[0], host.gpus[7]).gb_per_s == 370);
  const Path near = path_between(host, host.gpus[3], host.nics[3].vertex);
  CHECK(near.links.size() == 2);
  CHECK(near.gb_per_s == 48);
  CHECK(path_between(host, host.gpus[3], host.nics[4].vertex).gb_per_s == 22);
}

TEST_CASE("each GPU uses the nearest NIC, and NICs get equal numbers of GPUs", "[topo]") {
  const auto [nics, numa_nodes, nearest] =
      GENERATE(table<int, int, std::vector<int>>({{8, 2, {0, 1, 2, 3, 4, 5, 6, 7}},
                                                  {4, 2, {0, 0, 1, 1, 2, 2, 3, 3}},
                                                  {2, 1, {0, 0, 0, 0, 1, 1, 1, 1}},
                                                  {1, 2, {0, 0, 0, 0, 0, 0, 0, 0}},
                                                  {0, 1, {}}}));
  CAPTURE(nics, numa_nodes);
  CHECK(nearest_nics(make_host(eight_gpus(nics, numa_nodes))) == nearest);
}

}  // namespace gxp
