#include "lib/tools/topology/rings/cluster_plan.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "lib/tools/topology/read/topology.h"
#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"

namespace gxp {
namespace {

// `hosts` on the leaves of a random tree of switches, in any order.
Topology random_network(size_t hosts, unsigned seed) {
  std::mt19937 random(seed);
  Topology topology;
  const size_t switches = 2 + random() % 5;
  for (size_t i = 0; i < switches; ++i) {
    topology.switches.push_back({.name = "s", .above = i == 0 ? kNoSwitch : random() % i});
  }
  for (size_t i = 0; i < hosts; ++i) {
    topology.hosts.push_back({.name = "h", .tree = 0, .leaves = {random() % switches}});
  }
  return topology;
}

// Two leaves of 50 GB/s each way below a spine; the hosts alternate between them.
Topology two_leaves(int hosts) {
  Topology topology;
  topology.switches = {{.name = "spine"},
                       {.name = "leaf1", .above = 0, .uplink_gb_per_s = 50},
                       {.name = "leaf2", .above = 0, .uplink_gb_per_s = 50}};
  for (int i = 0; i < hosts; ++i) {
    topology.hosts.push_back(
        {.name = "host" + std::to_string(i), .tree = 0, .leaves = {size_t(1 + i % 2)}});
  }
  return topology;
}

HostTopology gpus_with_nics() {
  HostTopology host = make_host(
      {.gpus = 8, .nics = 8, .pcie_gb_per_s = 48, .nvlink_gb_per_s = 370, .latencies = {}});
  for (Nic& nic : host.nics) nic.gb_per_s = 12.5;
  return host;
}

}  // namespace

TEST_CASE("no order of hosts moves less between switches than the plan's", "[topo][plan]") {
  const size_t hosts = GENERATE(size_t{1}, size_t{2}, size_t{5}, size_t{7});
  const unsigned seed = GENERATE(range(0u, 10u));
  const Topology topology = random_network(hosts, seed);
  const double planned = traffic_of_ring(topology, order_hosts(topology)).hops_between_switches;
  std::vector<size_t> order(hosts);
  std::iota(order.begin(), order.end(), size_t{0});
  double least = planned;
  do {
    least = std::min(least, traffic_of_ring(topology, order).hops_between_switches);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  CAPTURE(hosts, seed);
  CHECK(planned == least);
}

TEST_CASE("hosts of a leaf follow each other, and the leaf's link carries a ring once",
          "[topo][plan]") {
  const Topology topology = two_leaves(6);
  const std::vector<size_t> order = order_hosts(topology);
  CHECK(order == std::vector<size_t>{0, 2, 4, 1, 3, 5});
  const RingTraffic planned = traffic_of_ring(topology, order);
  CHECK(planned.hops_between_switches == 2);
  CHECK(planned.gb_per_s == 50);
  const RingTraffic given = traffic_of_ring(topology, {0, 1, 2, 3, 4, 5});
  CHECK(given.hops_between_switches == 6);
  CHECK(given.gb_per_s == Approx(50.0 / 3));
  CHECK(to_hostfile(topology, {4, 1}, 8) == "host4 slots=8\nhost1 slots=8\n");
}

TEST_CASE("72 hosts of 8 GPUs have a ring on each rail", "[topo][plan]") {
  Topology topology = two_leaves(72);
  for (NetworkSwitch& leaf : topology.switches) leaf.uplink_gb_per_s *= 8;
  const ClusterPlan plan = plan_cluster(topology, {host_routes(gpus_with_nics())});
  REQUIRE(plan.rings.size() == 1);
  REQUIRE(plan.rings[0].channels.size() == 8);
  for (int nic = 0; nic < 8; ++nic) CHECK(plan.rings[0].channels[size_t(nic)].ring.nic == nic);
  CHECK(plan.ring_gb_per_s == Approx(8 * 12.5));
  CHECK(plan.tree_gb_per_s == Approx(8 * 12.5 * 575 / 576));  // each NIC carries all data twice
  CHECK(plan.tree_depth == 7);
}

TEST_CASE("the busiest host of two trees has two hosts below it", "[topo][plan]") {
  CHECK(busiest_host_of_trees(1) == 0);
  CHECK(busiest_host_of_trees(2) == 1);
  CHECK(busiest_host_of_trees(3) == 1.5);
  for (int hosts = 4; hosts < 100; ++hosts) CHECK(busiest_host_of_trees(hosts) == 2);
}

}  // namespace gxp
