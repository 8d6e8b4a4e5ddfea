#include "lib/tools/topology/rings/plan_graphs.h"

#include <set>

#include "lib/tools/topology/read/channel_graphs.h"
#include "lib/tools/topology/read/sources.h"
#include "lib/tools/topology/read/topology.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Topology hosts_of(const std::string& file, size_t count) {
  Topology topology = load_topology(GXP_TEST_DATA "/topo/" + file);
  topology.hosts.resize(count, topology.hosts[0]);
  return topology;
}

// What NCCL must find: every GPU once in each channel, between the same nets.
void check_channels(const ChannelGraph& graph, size_t gpus, size_t nets) {
  CHECK(graph.channels.size() == size_t(graph.channel_count.value_or(-1)));
  for (const Channel& channel : graph.channels) {
    std::set<int64_t> seen;
    for (size_t i = nets / 2; i < channel.devices.size() - nets / 2; ++i) {
      CHECK(channel.devices[i].kind == ChannelDevice::Kind::kGpu);
      seen.insert(channel.devices[i].dev);
    }
    CHECK(seen.size() == gpus);
    CHECK(channel.devices.size() == gpus + nets);
    if (nets == 0) continue;
    CHECK(channel.devices.front().kind == ChannelDevice::Kind::kNet);
    CHECK(channel.devices.front().dev == channel.devices.back().dev);
  }
}

}  // namespace

TEST_CASE("a plan's graph file carries what the plan does, in equal channels", "[topo][plan]") {
  const auto [file, hosts] = GENERATE(table<std::string, size_t>({{"oci-H100-topology.xml", 1},
                                                                  {"oci-H100-topology.xml", 2},
                                                                  {"rccl-topo_8p_940.xml", 1},
                                                                  {"rccl-topo_4p3l_n4.xml", 2}}));
  CAPTURE(file, hosts);
  const Topology topology = hosts_of(file, hosts);
  const ClusterPlan plan = plan_cluster(topology);
  const ChannelGraphs graphs = read_channel_graphs(
      write_channel_graphs(channel_graphs_of(plan, *topology.trees[0])), "planned");
  REQUIRE(graphs.graphs.size() == 2);
  for (const ChannelGraph& graph : graphs.graphs) {
    check_channels(graph, 8, hosts == 1 ? 0 : 2);
    const double sum = *graph.speed_intra * double(graph.channels.size());
    CHECK(sum == Approx(graph.id == 0 ? plan.ring_gb_per_s
                                      : std::min(plan.ring_gb_per_s, plan.tree_gb_per_s))
                     .epsilon(1e-3));
    CHECK(*graph.speed_intra <= 60);
  }
}

TEST_CASE("one GPU has no graph but with those of other hosts", "[topo][plan]") {
  Topology topology = load_topology("pcie:1");
  CHECK_THROWS_WITH(channel_graphs_of(plan_cluster(topology), *topology.trees[0]),
                    Catch::Contains("one GPU has no ring"));
  topology.hosts.push_back({.name = "other", .tree = 0});
  CHECK(channel_graphs_of(plan_cluster(topology), *topology.trees[0]).graphs.size() == 2);
}

TEST_CASE("the plan of a machine carries what the rings of its published graph carry",
          "[topo][plan]") {
  const Topology topology = hosts_of("azure-ncv4-topo.xml", 1);
  const Topology published = load_topology(GXP_TEST_DATA "/topo/azure-ncv4-graph.xml");
  const ClusterPlan plan = plan_cluster(topology);
  std::vector<double> used(plan.kinds[0].links().size(), 0);
  const ChannelGraph& ring = published.channel_graphs.at(0);
  for (const Channel& channel : ring.channels) {
    Ring planned;
    for (const ChannelDevice& device : channel.devices) planned.gpus.push_back(int(device.dev));
    for (const uint32_t link : links_of_ring(plan.kinds[0], planned)) used[link] += 1;
  }
  double most_times = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    most_times = std::max(most_times, used[i] / plan.kinds[0].links()[i].gb_per_s);
  }
  CHECK(plan.ring_gb_per_s >= double(ring.channels.size()) / most_times * (1 - 1e-9));
}

}  // namespace gxp
