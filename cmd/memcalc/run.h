// gxp memcalc RUN.toml: the memory of a run, operation by operation. Sizes of rank 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cmd/memcalc/options.h"
#include "cmd/memcalc/report.h"
#include "lib/replay/memory.h"
#include "lib/replay/run_search.h"
#include "lib/report/report.h"

namespace gxp {

// Prints results[] of {gpus, parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes,
// workspace_bytes, communication_bytes, peak_bytes, total_bytes (the same), peak_phase, peak_at,
// arena_bytes[, host_bytes, file_bytes][, fits]}, of rank 0, those two where it offloads; phases[]
// likewise; staged_bytes and replica_bytes, of a host's memory, where checkpoint.async or
// checkpoint.replica takes some; of the last number of GPUs, curve[] of what lives while each operation runs: a plot in
// text. With --explain, terms[]. With --solve, results[] of add_run_solutions() alone. Without
// --limit, train.device_memory_bytes is the limit. The options are
// checked (check_run_options()). Errors: as load_config() and network_of_run().
int plan_memory_of_run(const MemcalcOptions& options, MemcalcView view);

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
