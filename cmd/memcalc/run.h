// gxp memcalc RUN.toml: the memory of a run, operation by operation.
#pragma once

#include "cmd/memcalc/options.h"
#include "cmd/memcalc/report.h"

namespace gxp {

// Prints results[] of {gpus, parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes,
// workspace_bytes, communication_bytes, peak_bytes, total_bytes (the same), peak_phase, peak_at,
// arena_bytes[, host_bytes, file_bytes][, fits]}, of rank 0, those two where it offloads; phases[]
// likewise; of the last number of GPUs, curve[] of what lives while each operation runs: a plot in
// text. With --explain, terms[]. With --solve, results[] of add_run_solutions() alone. Without
// --limit, train.device_memory_bytes is the limit. The options are
// checked (check_run_options()). Errors: as load_config() and network_of_run().
int plan_memory_of_run(const MemcalcOptions& options, MemcalcView view);

}  // namespace gxp
