#include "lib/tools/colltest/simulate/simulation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"

namespace gxp {
namespace {

constexpr double kMostTraced = 1e6;  // steps: some 200 MB of JSON

std::vector<Cell> row_of(const BenchCase& bench, const Simulated& simulated) {
  const SimulationResult& result = simulated.result;
  const auto bytes = [&](size_t elements) { return int64_t(elements * size_of(bench.dtype)); };
  const Bandwidth reached =
      bandwidth(*bench.operation, bench.size_bytes(), result.seconds, simulated.shape.world_size);
  return make_row(bench.operation->name, bench.size_bytes(), to_string(bench.dtype),
                  simulated.algorithm->name,
                  simulated.shape.segment > 0 ? Cell(bytes(simulated.shape.segment)) : Cell(),
                  result.seconds * 1e6, reached.algbw, reached.busbw,
                  *std::ranges::max_element(result.bytes_sent), result.events);
}

}  // namespace

std::string to_chrome_trace(const SimulationResult& result) {
  constexpr double kMicroseconds = 1e6;
  nlohmann::json events = nlohmann::json::array();
  for (const SimulatedStep& step : result.steps) {
    events.push_back({{"ph", "X"},
                      {"name", to_string(step.step)},
                      {"pid", 0},
                      {"tid", step.rank},
                      {"ts", step.begin_s * kMicroseconds},
                      {"dur", (step.end_s - step.begin_s) * kMicroseconds}});
  }
  return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump();
}

std::string name_of(const Algorithm& algorithm, const BenchCase& bench) {
  return fmt::format("{} of {} by {}", bench.operation->name, format_bytes(bench.size_bytes()),
                     algorithm.name);
}

void check_traceable(const Algorithm& algorithm, const BenchCase& bench, const CallShape& shape) {
  if (double(algorithm.rounds(shape)) * shape.world_size <= kMostTraced) return;
  fail(ErrorKind::kUsage, "trace {} on {} ranks: more than a million steps; simulate fewer ranks",
       name_of(algorithm, bench), shape.world_size);
}

SimulationReport::SimulationReport(std::vector<Fact> facts, std::span<const BenchCase> cases,
                                   bool trace)
    : traced_(trace ? &cases.back() : nullptr) {
  done_.report = {.schema = "gxp.allreduce-test.simulation/1", .facts = std::move(facts)};
  done_.report.add_table("results", {{"op"},
                                     {"size", "size", Style::kBytes},
                                     {"type"},
                                     {"algorithm"},
                                     {"segment_bytes", "segment", Style::kBytes},
                                     {"time_us"},
                                     {"algbw", "algbw GB/s"},
                                     {"busbw", "busbw GB/s"},
                                     {"sent", "most sent", Style::kBytes},
                                     {"events"}});
  done_.report.add_table("links", {{"op"},
                                   {"size", "size", Style::kBytes},
                                   {"link", "busiest links"},
                                   {"bytes", "", Style::kBytes},
                                   {"utilisation"}});
}

void SimulationReport::add(const BenchCase& bench, const Simulated& simulated) {
  done_.report.tables[0].add_row(row_of(bench, simulated));
  for (const LinkLoad& load : simulated.result.busiest) {
    done_.report.tables[1].add_row(bench.operation->name, bench.size_bytes(), load.name, load.bytes,
                                   load.utilisation);
  }
  if (traces(bench)) done_.trace = to_chrome_trace(simulated.result);
}

}  // namespace gxp
