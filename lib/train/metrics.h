// metrics.jsonl: one JSON object per optimizer step.
//
// Keys: step, loss, grad_norm, lr, tokens (of the step, all ranks), targets (of as many, those that
// count in the loss: fewer where data.train has labels), tokens_per_s, mfu (a share of peak_flops,
// FLOP/s of one rank; both null on a CPU, see peak_rate()), step_ms, comm_ms, update_ms (from the
// decision on clipping to the end), wire_bytes (sent by rank 0 in the step),
// wire_bytes_between_hosts (of them to other hosts), peak_bytes, time (of day, UTC),
// peak_bytes_by_kind {...}, epoch (how often the data have been read so far; of several entries of
// data.train with weights: epochs, a list), and valid_loss in the steps that validated. Where state
// is offloaded also host_bytes and file_bytes (offloaded by rank 0), offload_bytes (that it fetched
// and stored) and offload_ms (in which it did so). On a GPU the last step also has driver_bytes:
// what its driver counts, without the context. With fp16, and once a step has made no update, also
// loss_scale and skipped_steps (so far); grad_norm and loss are null where they are not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/device/tracker.h"
#include "lib/train/step/step_result.h"

namespace gxp {

struct StepMetrics {
  StepResult result;
  std::optional<double> mfu;         // model FLOP/s over peak_flops of all ranks
  std::optional<double> peak_flops;  // PeakRate's, of one rank
  MemoryUse peak;                    // of rank 0's device
  uint64_t host_bytes = 0;           // offloaded by rank 0
  uint64_t file_bytes = 0;
  uint64_t driver_bytes = 0;  // of a GPU, as its driver counts, since the run has opened it
  std::optional<double> valid_loss;
  std::optional<int64_t> skipped_steps;  // so far, if reported
  std::vector<double> epochs;            // DataOrder::epochs()
};

std::string to_json_line(const StepMetrics& metrics);  // no line feed

// Appends lines to a file; each is in the file when write() returns. Errors: kIo; the file of a
// run's own directory must be a regular one, no link, and must not be removed meanwhile.
class MetricsFile {
 public:
  // An existing file keeps the lines of steps up to `last_step` (0: none), after which a resumed
  // run continues. The file is truncated after them, never rewritten: a process that ends at any
  // point loses no line. `is_runs_own`: the run's own file, not one named by the user, which may be
  // a device or a pipe.
  MetricsFile(const std::string& path, int64_t last_step, bool is_runs_own = false);
  void write(const StepMetrics& metrics);

 private:
  std::string path_;
  bool is_runs_own_;
  Fd file_;
};

}  // namespace gxp
