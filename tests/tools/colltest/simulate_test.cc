#include "lib/tools/colltest/simulate/simulate.h"

#include "lib/base/error.h"
#include "lib/tools/topology/rings/rank_order.h"
#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"

namespace gxp {
namespace {

Cluster small_cluster() {
  HostGroup group{.hosts = 4,
                  .inside = make_host({.gpus = 4,
                                       .nics = 1,
                                       .pcie_gb_per_s = 50,
                                       .nvlink_gb_per_s = 400,
                                       .latencies = {1e-6, 1e-6, 1e-6}})};
  group.inside.nics[0].gb_per_s = 10;
  return Cluster({.groups = {group}, .network = {.latency_s = 1e-6}, .fold_gb_per_s = 100});
}

BenchCase all_reduce_of(size_t count) {
  return {find_operation("all_reduce"), DType::kF32, ReduceOp::kSum, 0, count};
}

const Cell& cell(const Table& table, size_t row, const std::string& key) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].key == key) return table.rows.at(row).at(i);
  }
  FAIL("no column " << key);
  return table.rows[0][0];
}

// Eight hosts of one GPU, every other one on the other of two leaves.
Cluster alternating_leaves() {
  HostGroup group{
      .hosts = 8,
      .inside =
          make_host({.gpus = 1, .nics = 1, .pcie_gb_per_s = 50, .latencies = {1e-6, 1e-6, 1e-6}})};
  group.inside.nics[0].gb_per_s = 10;
  return Cluster({.groups = {group},
                  .network = {.latency_s = 1e-6,
                              .leaf_of_host = {0, 1, 0, 1, 0, 1, 0, 1},
                              .oversubscription = 4},
                  .fold_gb_per_s = 100});
}

}  // namespace

TEST_CASE("the best of all algorithms is no slower than any", "[bench]") {
  const Cluster cluster = small_cluster();
  const size_t count = GENERATE(2, 1 << 20);
  const BenchCase bench = all_reduce_of(count);
  const auto time_of = [&](const std::string& algorithm) {
    const SelectionSettings settings{.algorithm = algorithm, .layout_invariant = false};
    const auto done =
        simulate_cases({&bench, 1}, cluster, place_ranks(cluster, 16), settings, false);
    return std::get<double>(cell(done.report.tables[0], 0, "time_us"));
  };
  const double best = time_of("auto");
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == Collective::kAllReduce)
      CHECK(best <= time_of(std::string(algorithm.name)));
  }
}

TEST_CASE("between hosts with one NIC for four ranks, that is where the time goes", "[bench]") {
  const Cluster cluster = small_cluster();
  const BenchCase bench = all_reduce_of(1 << 24);
  const auto done = simulate_cases({&bench, 1}, cluster, place_ranks(cluster, 16),
                                   {.layout_invariant = false}, /*trace=*/true);
  // Neighbours first, so that least is left to send when hosts are crossed.
  CHECK(std::get<std::string>(cell(done.report.tables[0], 0, "algorithm")) == "halving-doubling");
  CHECK(std::get<std::string>(cell(done.report.tables[1], 0, "link")).find("NIC") !=
        std::string::npos);
  CHECK(done.trace.find("traceEvents") != std::string::npos);
  CHECK(done.notes.empty());
}

TEST_CASE("more ranks than the cluster has GPUs are refused", "[bench]") {
  const Cluster cluster = small_cluster();
  const BenchCase bench = all_reduce_of(4);
  CHECK_THROWS_AS(simulate_cases({&bench, 1}, cluster, place_ranks(cluster, 17), {}, false), Error);
}

// A trunk carries 10 GB/s each way: in the given order four neighbours' data, as planned one's.
TEST_CASE("a ring is four times as fast where neighbouring ranks share a leaf", "[bench]") {
  const Cluster cluster = alternating_leaves();
  const BenchCase bench = all_reduce_of(1 << 24);
  const auto time_of = [&](std::vector<int> gpu_of_rank) {
    const SelectionSettings settings{.algorithm = "ring", .layout_invariant = false};
    const auto done = simulate_cases({&bench, 1}, cluster, std::move(gpu_of_rank), settings, false);
    return std::get<double>(cell(done.report.tables[0], 0, "time_us"));
  };
  const double given = time_of(place_ranks(cluster, 8));
  const double planned = time_of(plan_ranks(cluster, 8));
  CHECK(given > 3 * planned);
}

// Each GPU has links of 25 GB/s to the next two on either side: by rank one of its four is in use.
TEST_CASE("along the plan's channels a ring uses all links", "[bench]") {
  HostTopology host;
  for (int gpu = 0; gpu < 8; ++gpu)
    host.gpus.push_back(host.graph.add_vertex(VertexKind::kGpu, "GPU " + std::to_string(gpu)));
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    for (const size_t next : {gpu + 1, gpu + 3})
      host.graph.add_cable({host.gpus[gpu], host.gpus[next % 8], LinkKind::kNvLink, 25, 0});
  }
  const VertexId hub = host.graph.add_vertex(VertexKind::kPcieSwitch, "switch");
  for (const VertexId gpu : host.gpus) host.graph.add_cable({gpu, hub, LinkKind::kPcie, 1, 0});
  const Cluster cluster(
      {.name = "c", .groups = {{.inside = host}}, .network = {}, .fold_gb_per_s = 1e6});
  const std::vector<int> gpus = place_ranks(cluster, 8);
  const BenchCase bench = all_reduce_of(1 << 24);
  const auto time_with = [&](const RankPlan& plan) {
    const SelectionSettings settings{.algorithm = "ring", .layout_invariant = false};
    const auto done = simulate_cases({&bench, 1}, cluster, gpus, settings, false, plan);
    return std::get<double>(cell(done.report.tables[0], 0, "time_us"));
  };
  CHECK(time_with({}) > 3.9 * time_with(plan_of_ranks(cluster, gpus)));
}

}  // namespace gxp
