#include "lib/tools/topology/rings/ring_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "lib/base/text_file.h"
#include "lib/tools/topology/nccl/nccl_host_routes.h"
#include "lib/tools/topology/read/nccl_xml.h"
#include "lib/tools/topology/rings/ring_packing.h"
#include "lib/topo/model/host_tree.h"
#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"

namespace gxp {
namespace {

// Links of any width; each pair's route takes one to three of them, whatever they join.
HostRoutes random_host(int gpus, int nics, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return size_t(random() % limit); };
  HostRoutes routes(gpus, nics);
  const size_t links = 5 + size_t(gpus) + below(3 * size_t(gpus));
  for (size_t i = 0; i < links; ++i) routes.add_link("link", 1 + 0.5 * double(below(40)));
  for (int from = 0; from < routes.places(); ++from) {
    for (int to = 0; to < routes.places(); ++to) {
      if (from == to || (gpus > 3 && below(8) == 0)) continue;
      HostRoute route{.type = PathType(below(size_t(PathType::kDis)))};
      const size_t first = below(links);
      const size_t hops = 1 + below(3);
      for (size_t hop = 0; hop < hops; ++hop) {
        route.links.push_back(uint32_t((first + hop * hop) % links));  // 0, 1, 4: all differ
      }
      routes.set(from, to, std::move(route));
    }
  }
  return routes;
}

template <class Act>
void for_each_ring(const HostRoutes& routes, bool through_nics, const Act& act) {
  std::vector<int> gpus(size_t(routes.gpus()));
  for (const int start : starts_of_rings(routes, through_nics)) {
    std::iota(gpus.begin(), gpus.end(), 0);
    do {
      const Ring ring = make_ring(routes, start, gpus);
      if (has_routes(routes, ring)) act(links_of_ring(routes, ring));
    } while (std::next_permutation(gpus.begin() + (through_nics ? 0 : 1), gpus.end()));
  }
}

// What channels use of each link, over what it carries: the most.
double fullest_link(const HostRoutes& routes, const std::vector<RingChannel>& channels) {
  std::vector<double> used(routes.links().size(), 0);
  for (const RingChannel& channel : channels) {
    for (const uint32_t link : links_of_ring(routes, channel.ring)) used[link] += channel.gb_per_s;
  }
  double fullest = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    fullest = std::max(fullest, used[i] / routes.links()[i].gb_per_s);
  }
  return fullest;
}

double rate_of(const HostRoutes& routes, std::vector<uint32_t> links) {
  std::ranges::sort(links);
  double rate = std::numeric_limits<double>::infinity();
  for (auto first = links.begin(); first != links.end();) {
    const auto behind = std::upper_bound(first, links.end(), *first);
    rate = std::min(rate, routes.links()[*first].gb_per_s / double(behind - first));
    first = behind;
  }
  return rate;
}

double sum_of(const std::vector<RingChannel>& channels) {
  double sum = 0;
  for (const RingChannel& channel : channels) sum += channel.gb_per_s;
  return sum;
}

// The proof that the header promises, by all rings that there are.
void check_optimal(const HostRoutes& routes, bool through_nics) {
  RingPacking packing = pack_rings(routes, starts_of_rings(routes, through_nics));
  const RingPlan plan = plan_rings(routes, {.through_nics = through_nics, .most_channels = 64});
  packing.prices.resize(routes.links().size());  // there may be no ring
  double least = 2;
  double best_ring = 0;
  for_each_ring(routes, through_nics, [&](const std::vector<uint32_t>& links) {
    double price = 0;
    for (const uint32_t link : links) price += packing.prices[link];
    least = std::min(least, price);
    best_ring = std::max(best_ring, rate_of(routes, links));
  });
  CHECK(plan.channels.empty() == (best_ring == 0));
  if (best_ring == 0) return;
  double all = 0;
  for (size_t i = 0; i < packing.prices.size(); ++i) {
    all += packing.prices[i] * routes.links()[i].gb_per_s;
  }
  CHECK(least > 1 - 1e-6);
  CHECK(all == Approx(plan.gb_per_s).epsilon(1e-6));
  CHECK(sum_of(plan.channels) == Approx(plan.gb_per_s));
  CHECK(fullest_link(routes, plan.channels) <= 1 + 1e-6);
  const RingPlan single = plan_rings(routes, {.through_nics = through_nics, .most_channels = 1});
  REQUIRE(single.channels.size() == 1);
  CHECK(single.gb_per_s == Approx(best_ring));
  CHECK(rate_of(routes, links_of_ring(routes, single.channels[0].ring)) == Approx(best_ring));
}

HostTree load_tree(const std::string& file) {
  const std::string path = GXP_TEST_DATA "/topo/" + file + ".xml";
  return read_nccl_xml(read_text_file(path, 1u << 20), path);
}

// A DGX-1 with V100 GPUs: two meshes of four, joined by a cube; two links where it says 2.
HostRoutes cube_mesh() {
  constexpr int kCables[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  HostRoutes routes(8, 0);
  for (const auto& [a, b, links] : kCables) {
    routes.set(a, b, {.links = {routes.add_link("NVLink", 20.0 * links)}, .type = PathType::kNvl});
    routes.set(b, a, {.links = {routes.add_link("NVLink", 20.0 * links)}, .type = PathType::kNvl});
  }
  return routes;
}

// Four GPUs of Azure's NC96ads A100 v4: below a NUMA node each, joined by NVLink in pairs.
HostRoutes gpu_pairs() {
  HostTopology host;
  for (int i = 0; i < 4; ++i) {
    const VertexId numa = host.graph.add_vertex(VertexKind::kNumaNode, "NUMA");
    host.gpus.push_back(host.graph.add_vertex(VertexKind::kGpu, "GPU"));
    host.graph.add_cable({numa, host.gpus.back(), LinkKind::kPcie, 12, 0});
    for (int other = 0; other < i; ++other) {
      host.graph.add_cable({VertexId(2 * other), numa, LinkKind::kInterNuma, 16, 0});
    }
  }
  host.graph.add_cable({host.gpus[0], host.gpus[1], LinkKind::kNvLink, 240, 0});
  host.graph.add_cable({host.gpus[2], host.gpus[3], LinkKind::kNvLink, 240, 0});
  return host_routes(host);
}

// Two sockets with two GPUs each.
HostRoutes two_sockets() {
  return host_routes(make_host({.gpus = 4,
                                .numa_nodes = 2,
                                .pcie_gb_per_s = 12,
                                .inter_numa_gb_per_s = 10,
                                .latencies = {}}));
}

}  // namespace

TEST_CASE("no rings carry more than the plan's, and no ring more than its best", "[topo][rings]") {
  const int gpus = GENERATE(2, 3, 4, 5, 6);
  const int nics = GENERATE(0, 1, 3);
  const unsigned seed = GENERATE(range(0u, 12u));
  CAPTURE(gpus, nics, seed);
  check_optimal(random_host(gpus, nics, seed), nics > 0);
}

TEST_CASE("no rings carry more than the plan's through 8 GPUs", "[topo][rings]") {
  const unsigned seed = GENERATE(range(0u, 6u));
  CAPTURE(seed);
  check_optimal(random_host(8, 0, seed), false);
}

TEST_CASE("no rings carry more than the plan's on published machines", "[topo][rings]") {
  const std::string file =
      GENERATE(as<std::string>(), "aws-p4d-24xl-topo", "azure-ncv4-topo", "azure-ndv4-topo",
               "oci-H100-topology", "oci-topo-flattened", "rccl-topo_4p3l_n4", "rccl-topo_8p_940");
  const bool through_nics = GENERATE(false, true);
  CAPTURE(file, through_nics);
  const HostTree tree = load_tree(file);
  const NcclPaths paths(tree);
  const HostRoutes routes = nccl_host_routes(paths, NcclRoutes(paths));
  check_optimal(routes, through_nics);
}

TEST_CASE("a cube of V100s has six rings that use every NVLink", "[topo][rings]") {
  const HostRoutes routes = cube_mesh();
  const RingPlan plan = plan_rings(routes);
  CHECK(plan.channels.size() == 6);
  CHECK(plan.gb_per_s == Approx(120));
  CHECK(plan.gb_per_s == Approx(plan.bound_gb_per_s));
  CHECK(fullest_link(routes, plan.channels) == Approx(1));
  check_optimal(routes, false);
}

// NCCL's: of azhpc-images' ncv4 graph, and of a graph that NCCL wrote on such a machine.
TEST_CASE("a plan carries what NCCL's rings carry, or more", "[topo][rings]") {
  struct Dumped {
    HostRoutes routes;
    std::vector<RingChannel> channels;
  };
  const std::vector<Dumped> dumped = {
      {gpu_pairs(), {{{-1, {0, 1, 2, 3}}, 12}, {{-1, {0, 3, 2, 1}}, 12}}},
      {two_sockets(), {{{-1, {0, 1, 2, 3}}, 10}}}};
  for (const Dumped& graph : dumped) {
    CHECK(fullest_link(graph.routes, graph.channels) <= 1);
    CHECK(plan_rings(graph.routes).gb_per_s >= sum_of(graph.channels));
  }
}

TEST_CASE("of rings that carry as much, the plan has that with the nearest hops", "[topo][rings]") {
  const RingPlan plan = plan_rings(two_sockets());
  REQUIRE(plan.channels.size() == 1);
  CHECK(plan.channels[0].ring.gpus == std::vector{0, 1, 2, 3});
  CHECK(plan.gb_per_s == 10);
  REQUIRE(plan.limits.size() == 1);
  CHECK(two_sockets().links()[plan.limits[0]].gb_per_s == 10);
}

TEST_CASE("each NIC of a host carries a ring where GPUs lie next to NICs", "[topo][rings]") {
  const HostRoutes routes = host_routes(make_host(
      {.gpus = 8, .nics = 4, .pcie_gb_per_s = 48, .nvlink_gb_per_s = 370, .latencies = {}}));
  const RingPlan plan = plan_rings(routes, {.through_nics = true});
  REQUIRE(plan.channels.size() == 4);
  CHECK(plan.gb_per_s == Approx(4 * 48));
  for (int nic = 0; nic < 4; ++nic) {  // its two GPUs are the ends of the ring
    const Ring& ring = plan.channels[size_t(nic)].ring;
    CHECK(ring.nic == nic);
    CHECK(ring.gpus.front() / 2 == nic);
    CHECK(ring.gpus.back() / 2 == nic);
  }
}

TEST_CASE("72 GPUs at one switch have one ring, in their order", "[topo][rings]") {
  const RingPlan plan = plan_rings(host_routes(
      make_host({.gpus = 72, .pcie_gb_per_s = 48, .nvlink_gb_per_s = 722, .latencies = {}})));
  REQUIRE(plan.channels.size() == 1);
  CHECK(plan.gb_per_s == Approx(plan.bound_gb_per_s));
  CHECK(plan.gb_per_s == Approx(722));
  CHECK(std::ranges::is_sorted(plan.channels[0].ring.gpus));
}

}  // namespace gxp
