#include "lib/tools/topology/model/cluster.h"

#include <set>

#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

HostGroup hosts_with(int hosts, int gpus, int nics) {
  HostGroup group{.hosts = hosts,
                  .inside = make_host({.gpus = gpus,
                                       .nics = nics,
                                       .pcie_gb_per_s = 40,
                                       .nvlink_gb_per_s = 400,
                                       .latencies = {}})};
  for (Nic& nic : group.inside.nics) nic.gb_per_s = 25;
  return group;
}

ClusterDescription describe(std::vector<HostGroup> groups, NetworkDescription network = {}) {
  return {.groups = std::move(groups), .network = network, .fold_gb_per_s = 100};
}

std::vector<std::string> route_between(const Cluster& cluster, int from, int to) {
  Cluster::Route route{};
  const size_t count = cluster.route(from, to, route);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(cluster.name_of(route[i]));
  return names;
}

std::string refusal(const ClusterDescription& description) {
  return complaint(ErrorKind::kConfig, [&] { const Cluster cluster(description); });
}

}  // namespace

TEST_CASE("GPUs are numbered through hosts and groups", "[topo]") {
  const Cluster cluster(describe({hosts_with(2, 4, 1), hosts_with(3, 2, 1)}));
  CHECK(cluster.hosts() == 5);
  CHECK(cluster.gpus() == 14);
  CHECK(cluster.host_of(7) == 1);
  CHECK(cluster.host_of(8) == 2);
  CHECK(cluster.host_of(13) == 4);
  CHECK(hosts_of_ranks(cluster, std::vector<int>{13, 0, 12, 1}) == std::vector<int>{0, 1, 0, 1});
}

TEST_CASE("a route leads through the NICs of both GPUs, or stays in the host", "[topo]") {
  const Cluster cluster(describe({hosts_with(2, 4, 2)}));
  CHECK(route_between(cluster, 0, 3) ==
        std::vector<std::string>{"host 0: GPU 0 -> NVSwitch", "host 0: NVSwitch -> GPU 3"});
  CHECK(route_between(cluster, 1, 6) ==
        std::vector<std::string>{"host 0: GPU 1 -> PCIe switch 0", "host 0: PCIe switch 0 -> NIC 0",
                                 "host 0: NIC 0 -> network", "host 1: network -> NIC 1",
                                 "host 1: NIC 1 -> PCIe switch 1",
                                 "host 1: PCIe switch 1 -> GPU 2"});
}

TEST_CASE("in a fat tree only what leaves the leaf takes the spine", "[topo]") {
  const Cluster cluster(describe({hosts_with(4, 2, 2)}, {.hosts_per_leaf = 2}));
  CHECK(route_between(cluster, 0, 2).size() == 6);
  const auto far = route_between(cluster, 0, 4);
  REQUIRE(far.size() == 8);
  CHECK(far[3] == "leaf 0 -> spine");
  CHECK(far[4] == "spine -> leaf 1");
  const Cluster rails(describe({hosts_with(4, 2, 2)}, {.hosts_per_leaf = 2, .rails = true}));
  CHECK(route_between(rails, 0, 2).size() == 6);  // rail 0 to rail 0
  CHECK(route_between(rails, 0, 3)[3] == "leaf 0 -> spine");
  CHECK(route_between(rails, 0, 3)[4] == "spine -> leaf 1");
}

TEST_CASE("a trunk carries what its NICs do, divided by the oversubscription", "[topo]") {
  const Cluster cluster(
      describe({hosts_with(5, 2, 2)}, {.hosts_per_leaf = 2, .oversubscription = 4}));
  const auto links = cluster.links();
  CHECK(links[links.size() - 6].gb_per_s == 2 * 2 * 25 / 4.0);
  CHECK(links[links.size() - 1].gb_per_s == 1 * 2 * 25 / 4.0);  // the last leaf has one host
}

TEST_CASE("a link that follows is entered from one place only", "[topo]") {
  const auto groups = GENERATE(values<std::vector<HostGroup>>(
      {{hosts_with(1, 8, 0)}, {hosts_with(3, 4, 4)}, {hosts_with(2, 4, 1), hosts_with(2, 2, 2)}}));
  const int hosts_per_leaf = GENERATE(0, 2);
  const Cluster cluster(describe(groups, {.hosts_per_leaf = hosts_per_leaf}));
  std::vector<std::set<int64_t>> before(cluster.links().size());
  for (int from = 0; from < cluster.gpus(); ++from) {
    for (int to = 0; to < cluster.gpus(); ++to) {
      Cluster::Route route{};
      const size_t count = cluster.route(from, to, route);
      for (size_t i = 0; i < count; ++i) before[route[i]].insert(i == 0 ? -1 - from : route[i - 1]);
    }
  }
  for (size_t link = 0; link < before.size(); ++link) {
    CAPTURE(cluster.name_of(uint32_t(link)));
    if (cluster.links()[link].follows) CHECK(before[link].size() <= 1);  // 0: on no route
  }
  Cluster::Route route{};
  cluster.route(0, cluster.gpus() - 1, route);
  CHECK(cluster.links()[route[0]].follows);  // a GPU's own first link
}

TEST_CASE("a cluster that cannot work is refused with the reason", "[topo]") {
  HostGroup apart = hosts_with(1, 2, 0);
  apart.inside.gpus.push_back(apart.inside.graph.add_vertex(VertexKind::kGpu, "GPU 2"));
  HostGroup silent = hosts_with(2, 2, 1);
  silent.inside.nics[0].gb_per_s = 0;
  HostGroup wrong_nic = hosts_with(2, 2, 1);
  wrong_nic.nic_of_gpu = {0, 1};
  HostGroup few_nics = hosts_with(2, 2, 1);
  few_nics.nic_of_gpu = {0};
  CHECK(refusal(describe({})) ==
        "cluster: 0 hosts with 0 GPUs; from 1 to 65536 hosts with up to 1048576 are possible");
  CHECK(refusal(describe({HostGroup{}})) ==
        "cluster: a host of 'host' has 0 GPUs; from 1 to 256 are possible");
  CHECK(refusal(describe({apart})).find("the path from GPU 0 to GPU 2 has no links") !=
        std::string::npos);
  CHECK(refusal(describe({silent})) ==
        "cluster: the bandwidth of NIC 0 of hosts 'host' is unknown; give nic_gb_per_s");
  CHECK(refusal(describe({wrong_nic})) ==
        "cluster: nic_of_gpu of hosts 'host' names NIC 1; they have 1");
  CHECK(refusal(describe({few_nics})).find("2 GPUs and 1 NICs, and nic_of_gpu names 1") !=
        std::string::npos);
  CHECK(refusal(describe({hosts_with(2, 2, 0)})).find("each GPU needs a NIC") != std::string::npos);
  CHECK(refusal(describe({hosts_with(60000, 256, 1)})).find("GPUs; from 1 to") !=
        std::string::npos);
  CHECK(refusal(describe({hosts_with(65536, 16, 64)})).find("links up to the hosts of 'host'") !=
        std::string::npos);
}

TEST_CASE("more ranks than GPUs cannot be placed", "[topo]") {
  const Cluster cluster(describe({hosts_with(1, 2, 0)}));
  CHECK(place_ranks(cluster, 2) == std::vector<int>{0, 1});
  CHECK(complaint(ErrorKind::kConfig, [&] { place_ranks(cluster, 3); }) ==
        "place 3 ranks: cluster has 2 GPUs, each for one rank");
}

}  // namespace gxp
