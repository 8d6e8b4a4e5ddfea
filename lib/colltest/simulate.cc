#include "lib/colltest/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/simulate/simulation_trace.h"
#include "lib/collective/simulate/simulator.h"

namespace gxp {
namespace {

// About 5 s: a packet takes up to four events of 0.3 us.
constexpr double kMostPackets = 6e6;
constexpr double kMostTraced = 1e6;                                // steps: some 200 MB of JSON
constexpr std::array<size_t, 2> kSegments = {256 << 10, 1 << 20};  // of trees, besides all at once

std::string name_of(const Algorithm& algorithm, const BenchCase& bench) {
  return fmt::format("{} of {} by {}", bench.operation->name, format_bytes(bench.size_bytes()),
                     algorithm.name);
}

struct Simulated {
  const Algorithm* algorithm = nullptr;
  CallShape shape;
  SimulationResult result;
};

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
           "simulate {} of {} on {} ranks: every algorithm takes long; name one with --algorithm",
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
    SimulationOptions options{.busiest = 3, .keep_steps = keep_steps};
    if (settings_.segment_bytes > 0) options.segment_bytes = settings_.segment_bytes;
    return options;
  }

  SimulationResult run(const Algorithm& algorithm, const BenchCase& bench, const CallShape& shape,
                       bool keep_steps) const {
    if (keep_steps && double(algorithm.rounds(shape)) * shape.world_size > kMostTraced) {
      fail(ErrorKind::kUsage, "trace {} on {} ranks: above a million steps; simulate fewer ranks",
           name_of(algorithm, bench), shape.world_size);
    }
    return simulate(algorithm, shape, bench.dtype, cluster_, gpus_, options_of(keep_steps));
  }

  const Cluster& cluster_;
  const SelectionSettings& settings_;
  const RankPlan& plan_;
  std::vector<int> gpus_;
  std::vector<int> hosts_;
  std::vector<std::string> notes_;
};

std::vector<Cell> row_of(const BenchCase& bench, const Simulated& simulated) {
  const SimulationResult& result = simulated.result;
  const auto bytes = [&](size_t elements) { return int64_t(elements * size_of(bench.dtype)); };
  const Bandwidth reached =
      bandwidth(*bench.operation, bench.size_bytes(), result.seconds, simulated.shape.world_size);
  return {std::string(bench.operation->name),
          int64_t(bench.size_bytes()),
          std::string(to_string(bench.dtype)),
          std::string(simulated.algorithm->name),
          simulated.shape.segment > 0 ? Cell(bytes(simulated.shape.segment)) : Cell(),
          result.seconds * 1e6,
          reached.algbw,
          reached.busbw,
          int64_t(*std::ranges::max_element(result.bytes_sent)),
          int64_t(result.events)};
}

}  // namespace

SimulatedCases simulate_cases(std::span<const BenchCase> cases, const Cluster& cluster,
                              std::vector<int> gpu_of_rank, const SelectionSettings& settings,
                              bool trace, const RankPlan& plan) {
  const auto ranks = int64_t(gpu_of_rank.size());
  Search search(cluster, std::move(gpu_of_rank), settings, plan);
  SimulatedCases done;
  done.report = {.schema = "gxp.allreduce-test.simulation/1",
                 .facts = {{{"cluster"}, cluster.description().name},
                           {{"hosts"}, int64_t{cluster.hosts()}},
                           {{"world_size", "ranks"}, ranks}}};
  Table& results = done.report.add_table("results", {{"op"},
                                                     {"size", "size", Style::kBytes},
                                                     {"type"},
                                                     {"algorithm"},
                                                     {"segment_bytes", "segment", Style::kBytes},
                                                     {"time_us"},
                                                     {"algbw", "algbw GB/s"},
                                                     {"busbw", "busbw GB/s"},
                                                     {"sent", "most sent", Style::kBytes},
                                                     {"events"}});
  Table& links = done.report.add_table("links", {{"op"},
                                                 {"size", "size", Style::kBytes},
                                                 {"link", "busiest links"},
                                                 {"bytes", "", Style::kBytes},
                                                 {"utilisation"}});
  for (const BenchCase& bench : cases) {
    if (!bench.operation->collective) continue;  // one message each
    const bool traced = trace && &bench == &cases.back();
    const Simulated simulated = search.best(bench, traced);
    results.add_row(row_of(bench, simulated));
    for (const LinkLoad& load : simulated.result.busiest) {
      links.add_row({std::string(bench.operation->name), int64_t(bench.size_bytes()), load.name,
                     int64_t(load.bytes), load.utilisation});
    }
    if (traced) done.trace = to_chrome_trace(simulated.result);
  }
  done.notes = std::move(search).notes();
  return done;
}

}  // namespace gxp
