#include "lib/topo/rank_order.h"

#include "lib/topo/cluster_topology.h"
#include "lib/topo/host_order.h"

#include "tests/catch.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

ClusterDescription hosts_on(std::vector<int> leaf_of_host) {
  HostGroup group{.hosts = 4,
                  .inside = make_host({.gpus = 4,
                                       .nics = 1,
                                       .numa_nodes = 2,
                                       .pcie_gb_per_s = 12,
                                       .inter_numa_gb_per_s = 10,
                                       .latencies = {}})};
  group.inside.nics[0].gb_per_s = 10;
  return {.name = "c",
          .groups = {group},
          .network = {.leaf_of_host = std::move(leaf_of_host)},
          .fold_gb_per_s = 1};
}

}  // namespace

TEST_CASE("ranks on hosts of a leaf follow each other, on the GPUs that were given", "[topo]") {
  const Cluster cluster(hosts_on({0, 1, 1, 0}));
  CHECK(plan_ranks(cluster, 16) ==
        std::vector<int>{0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(plan_ranks(cluster, 14) == std::vector<int>{0, 1, 2, 3, 12, 13, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("leaves that do not fit the hosts are refused", "[topo]") {
  const auto [leaves, said] = GENERATE(table<std::vector<int>, std::string>(
      {{{0, 1}, "c: leaf_of_host names 2 hosts; there are 4"},
       {{0, 2, 2, 0},
        "c: leaf_of_host names a leaf 2, but no host of leaf 1; number leaves from 0"}}));
  const auto build = [&, leaves = leaves] { Cluster{hosts_on(leaves)}; };
  CHECK(complaint(ErrorKind::kConfig, build) == said);
}

TEST_CASE("the topology of a cluster has the leaves that it names", "[topo]") {
  const Topology topology = topology_of(hosts_on({0, 1, 1, 0}), {HostTree()});
  CHECK(topology.switches.size() == 3);
  CHECK(order_hosts(topology) == std::vector<size_t>{0, 3, 1, 2});
}

}  // namespace gxp
