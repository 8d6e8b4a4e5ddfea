// The results of simulated cases, as a report: a row per case, and the busiest links of each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/tools/colltest/simulate/simulate.h"
#include "lib/tools/colltest/simulate/simulator.h"

namespace gxp {

// A simulation as a trace for chrome://tracing and ui.perfetto.dev: a row for each rank, a bar for
// each step. Source: "Trace Event Format", complete events (ph "X"), times in microseconds.

// JSON of result.steps, so options.keep_steps must have been set.
std::string to_chrome_trace(const SimulationResult& result);

inline constexpr size_t kBusiestShown = 3;  // links of a case

// "all_reduce of 64 MiB by ring"
std::string name_of(const Algorithm& algorithm, const BenchCase& bench);
// kUsage: a trace of the case would be too long to be read.
void check_traceable(const Algorithm& algorithm, const BenchCase& bench, const CallShape& shape);

struct Simulated {
  const Algorithm* algorithm = nullptr;
  CallShape shape;
  SimulationResult result;
};

class SimulationReport {
 public:
  // `facts` say over what; the trace is of the last case, if there is to be one.
  SimulationReport(std::vector<Fact> facts, std::span<const BenchCase> cases, bool trace);
  // Whether to keep this case's steps.
  [[nodiscard]] bool traces(const BenchCase& bench) const { return &bench == traced_; }
  void add(const BenchCase& bench, const Simulated& simulated);
  [[nodiscard]] SimulatedCases finish() && { return std::move(done_); }

 private:
  const BenchCase* traced_;
  SimulatedCases done_;
};

}  // namespace gxp
