#include "lib/tools/topology/rings/rank_order.h"

#include <set>

#include "lib/tools/topology/read/cluster_file.h"
#include "lib/tools/topology/read/topology.h"
#include "lib/tools/topology/rings/host_order.h"
#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"
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

// Two switches with four GPUs each on links of `wide` GB/s, and 10 GB/s between the switches.
HostTopology two_quads(double wide) {
  HostTopology host;
  const VertexId left = host.graph.add_vertex(VertexKind::kNvSwitch, "left");
  const VertexId right = host.graph.add_vertex(VertexKind::kNvSwitch, "right");
  host.graph.add_cable({left, right, LinkKind::kNvLink, 10, 0});
  for (int gpu = 0; gpu < 8; ++gpu) {
    host.gpus.push_back(host.graph.add_vertex(VertexKind::kGpu, "GPU " + std::to_string(gpu)));
    host.graph.add_cable(
        {host.gpus.back(), gpu % 2 == 0 ? left : right, LinkKind::kNvLink, wide, 0});
  }
  return host;
}

RankPlan plan_of(const HostTopology& inside, int hosts, const std::vector<int>& gpu_of_rank) {
  return plan_of_ranks(Cluster({.name = "c",
                                .groups = {{.hosts = hosts, .inside = inside}},
                                .network = {},
                                .fold_gb_per_s = 1}),
                       gpu_of_rank);
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
  const Topology topology = topology_of(hosts_on({0, 1, 1, 0}), {});
  CHECK(topology.switches.size() == 3);
  CHECK(order_hosts(topology) == std::vector<size_t>{0, 3, 1, 2});
}

// GPUs of one switch follow each other, so that a ring goes from switch to switch once.
TEST_CASE("every channel is all ranks, in the order of the best ring", "[topo][plan]") {
  const std::vector<int> gpus = {3, 1, 0, 6, 7, 4};
  const RankPlan plan = plan_of(two_quads(25), 1, gpus);
  REQUIRE(plan.ranks == 6);
  REQUIRE(!plan.rings.empty());
  REQUIRE(plan.rings.size() % 6 == 0);
  for (size_t at = 0; at < plan.rings.size(); at += 6) {
    const std::vector<int> ring(plan.rings.begin() + long(at), plan.rings.begin() + long(at) + 6);
    CHECK(std::set(ring.begin(), ring.end()).size() == 6);
    int crossings = 0;
    for (size_t i = 0; i < 6; ++i)
      crossings += gpus[size_t(ring[i])] % 2 != gpus[size_t(ring[(i + 1) % 6])] % 2;
    CHECK(crossings == 2);
  }
}

TEST_CASE("ranks of a host are in groups only where these are joined wide enough", "[topo][plan]") {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(plan_of(two_quads(20), 1, all).groups.empty());
  CHECK(plan_of(two_quads(21), 1, all).groups == std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(plan_of(two_quads(21), 1, {0, 2, 4, 1}).groups.empty());  // unequal
}

TEST_CASE("on several hosts these are the groups", "[topo][plan]") {
  HostTopology inside = two_quads(100);
  const VertexId nic = inside.graph.add_vertex(VertexKind::kNic, "NIC");
  inside.graph.add_cable({0, nic, LinkKind::kPcie, 5, 0});
  inside.nics = {{nic, 5}};
  CHECK(plan_of(inside, 2, {0, 8, 1, 9}).groups == std::vector<int>{0, 1, 0, 1});
}

}  // namespace gxp
