// The tables of gxp memcalc RUN.toml. Sizes of rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/replay/memory.h"
#include "lib/replay/run_search.h"
#include "lib/report/report.h"

namespace gxp {

struct PlannedRun {
  int gpus = 1;
  RunPlan plan;
  RunMemory memory;
};

struct RunSolution {
  int gpus = 1;
  Largest largest;
  RunMemory too_large;  // with one more
};

// results[]: the peak, by kind, and where it is.
void add_run_results(Report& report, const std::vector<PlannedRun>& runs,
                     std::optional<uint64_t> limit_bytes);
// phases[]: the most of each part of the run.
void add_run_phases(Report& report, const std::vector<PlannedRun>& runs);
// terms[]: what the step's bytes are made of.
void add_run_terms(Report& report, const std::vector<PlannedRun>& runs);
// curve[]: what lives while each operation runs.
void add_run_curve(Report& report, const PlannedRun& run);
// results[] of {gpus, setting, value, peak_bytes, next_peak_bytes, binding}: the largest value
// that fits, null if none does, and with one more the peak and the kind of memory that has most.
void add_run_solutions(Report& report, const Quantity<RunConfig>& quantity,
                       const std::vector<RunSolution>& solutions);

}  // namespace gxp
