#include "lib/tools/colltest/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/tools/colltest/simulate/simulation_report.h"
#include "lib/tools/colltest/simulate/simulator.h"

namespace gxp {
namespace {

// About 5 s: a packet takes up to four events of 0.3 us.
constexpr double kMostPackets = 6e6;
constexpr std::array<size_t, 2> kSegments = {256 << 10, 1 << 20};  // of trees, besides all at once

class Search {
 public:
  Search(const Cluster& cluster, std::vector<int> gpu_of_rank, const SelectionSettings& settings,
         const RankPlan& plan)
      : cluster_(cluster),
        settings_(settings),
        plan_(plan),
        gpus_(std::move(gpu_of_rank)),
        hosts_(hosts_of_ranks(cluster, gpus_)) {}

  Simulated best(const BenchCase& bench, bool keep_steps) {
    const Collective collective = *bench.operation->collective;
    const Algorithm* wanted = find_algorithm(settings_.algorithm, collective);
    Simulated best;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective != collective) continue;
      if (wanted != nullptr ? &algorithm != wanted
                            : settings_.layout_invariant && !algorithm.layout_invariant)
        continue;
      for (const CallShape& shape : shapes(algorithm, bench)) {
        if (wanted == nullptr && !affordable(algorithm, bench, shape)) continue;
        Simulated tried{&algorithm, shape, run(algorithm, bench, shape, keep_steps)};
        if (best.algorithm == nullptr || tried.result.seconds < best.result.seconds)
          best = std::move(tried);
      }
    }
    if (best.algorithm == nullptr) {
      fail(ErrorKind::kUsage,
           "simulate {} of {} on {} ranks: simulating all algorithms takes too long; choose one "
           "with --algorithm",
           bench.operation->name, format_bytes(bench.size_bytes()), gpus_.size());
    }
    return best;
  }

  [[nodiscard]] std::vector<std::string> notes() && { return std::move(notes_); }

 private:
  // With each segment that makes a difference.
  [[nodiscard]] std::vector<CallShape> shapes(const Algorithm& algorithm,
                                              const BenchCase& bench) const {
    const size_t element = size_of(bench.dtype);
    CallShape shape{.world_size = int(gpus_.size()),
                    .count = bench.count,
                    .root = bench.root,
                    .channels = channels_of(algorithm),
                    .segment = settings_.segment_bytes / element,
                    .hosts = hosts_,
                    .orders = orders_of(plan_)};
    std::vector<CallShape> result = {shape};
    for (const size_t bytes : kSegments) {
      if (settings_.segment_bytes > 0 || bytes >= bench.size_bytes()) break;
      shape.segment = bytes / element;
      if (algorithm.rounds(shape) != algorithm.rounds(result[0])) result.push_back(shape);
    }
    return result;
  }

  [[nodiscard]] int channels_of(const Algorithm& algorithm) const {
    if (settings_.channels > 0 || !algorithm.uses.channels || plan_.rings.empty())
      return std::max(1, settings_.channels);
    return int(plan_.rings.size() / gpus_.size());
  }

  bool affordable(const Algorithm& algorithm, const BenchCase& bench, const CallShape& shape) {
    double bytes = 0;
    for (int rank = 0; rank < shape.world_size; ++rank)
      bytes += double(elements_sent(algorithm, rank, shape)) * double(size_of(bench.dtype));
    const SimulationOptions options = options_of(false);
    const double messages = double(algorithm.rounds(shape)) * shape.world_size;
    const double packets = messages + std::min(bytes / double(options.segment_bytes),
                                               messages * (options.max_packets - 1));
    if (packets <= kMostPackets) return true;
    notes_.push_back(fmt::format(
        "simulate {}: up to {:.0f} million packets, so it was not tried; use --algorithm {}",
        name_of(algorithm, bench), packets / 1e6, algorithm.name));
    return false;
  }

  [[nodiscard]] SimulationOptions options_of(bool keep_steps) const {
    SimulationOptions options{.busiest = kBusiestShown, .keep_steps = keep_steps};
    if (settings_.segment_bytes > 0) options.segment_bytes = settings_.segment_bytes;
    return options;
  }

  SimulationResult run(const Algorithm& algorithm, const BenchCase& bench, const CallShape& shape,
                       bool keep_steps) const {
    if (keep_steps) check_traceable(algorithm, bench, shape);
    return simulate(algorithm, shape, bench.dtype, cluster_, gpus_, options_of(keep_steps));
  }

  const Cluster& cluster_;
  const SelectionSettings& settings_;
  const RankPlan& plan_;
  std::vector<int> gpus_;
  std::vector<int> hosts_;
  std::vector<std::string> notes_;
};

int ranks_of_a_host(const GroupTopology& topology) {
  return topology.hosts.empty() ? topology.world_size
                                : int(std::ranges::count(topology.hosts, topology.hosts[0]));
}

int hosts_of(const GroupTopology& topology) {
  return topology.hosts.empty() ? 1 : *std::ranges::max_element(topology.hosts) + 1;
}

FlatLinks links_of(const GroupTopology& topology, const Profile& profile) {
  const int ranks = ranks_of_a_host(topology);
  const int hosts = hosts_of(topology);
  const LinkClass& inside = find_link(profile, topology.transport, ranks, 1);
  const LinkClass* between =
      hosts == 1 ? nullptr : &find_link(profile, topology.transport, 1, hosts);
  return {.inside = inside,
          .between = between,
          .inside_scale =
              profile.machine.ranks_per_core(ranks) / profile.machine.ranks_per_core(inside.ranks)};
}

// "verbs among 2 ranks"
std::string name_of(const LinkClass& link) {
  return link.hosts > 1 ? fmt::format("{} among {} hosts", link.transport, link.hosts)
                        : fmt::format("{} among {} ranks", link.transport, link.ranks);
}

}  // namespace

SimulatedCases simulate_cases(std::span<const BenchCase> cases, const Cluster& cluster,
                              std::vector<int> gpu_of_rank, const SelectionSettings& settings,
                              bool trace, const RankPlan& plan) {
  const auto ranks = int64_t(gpu_of_rank.size());
  Search search(cluster, std::move(gpu_of_rank), settings, plan);
  SimulationReport report({{{"cluster"}, cluster.description().name},
                           {{"hosts"}, int64_t{cluster.hosts()}},
                           {{"world_size", "ranks"}, ranks}},
                          cases, trace);
  for (const BenchCase& bench : cases) {
    if (bench.operation->collective) report.add(bench, search.best(bench, report.traces(bench)));
  }
  SimulatedCases done = std::move(report).finish();
  done.notes = std::move(search).notes();
  return done;
}

SimulatedCases simulate_cases(std::span<const BenchCase> cases, const GroupTopology& topology,
                              const Profile& profile, const SelectionSettings& settings,
                              bool trace) {
  const CostModel model(topology, profile);
  const FlatLinks links = links_of(topology, profile);
  std::string measured = name_of(links.inside);
  if (links.between != nullptr) measured += ", " + name_of(*links.between);
  SimulationReport report({{{"measured_over", "measured over"}, measured},
                           {{"hosts"}, int64_t{hosts_of(topology)}},
                           {{"world_size", "ranks"}, int64_t{topology.world_size}}},
                          cases, trace);
  for (const BenchCase& bench : cases) {
    if (!bench.operation->collective) continue;  // one message each
    const AlgorithmPlan plan =
        select_algorithm(call_of(bench, 0), settings, model, MemoryOrigin::kOrdinary);
    const CallShape shape = shape_of(call_of(bench, 0), plan, topology);
    const SimulationOptions options{.busiest = kBusiestShown, .keep_steps = report.traces(bench)};
    if (options.keep_steps) check_traceable(*plan.algorithm, bench, shape);
    report.add(bench, {plan.algorithm, shape,
                       simulate(*plan.algorithm, shape, bench.dtype, links, options)});
  }
  return std::move(report).finish();
}

}  // namespace gxp
