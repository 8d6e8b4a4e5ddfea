// What a step has found, and what its parts tell each other while it runs.
#pragma once

#include <chrono>
#include <cstdint>

namespace gxp {

struct StepResult {
  int64_t step = 0;      // from 1
  double loss = 0;       // mean over all tokens of the step, on all ranks
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double loss_scale = 1;  // that gradients were scaled by; 1 but for fp16
  bool skipped = false;   // fp16: gradients overflowed, nothing was updated
  uint64_t tokens = 0;    // of the step, on all ranks
  double seconds = 0;
  double comm_seconds = 0;                // in which this rank's comm lane was busy
  double update_seconds = 0;              // from the decision on clipping to the step's end
  double offload_seconds = 0;             // in which this rank's offload lane was busy
  uint64_t offload_bytes = 0;             // that it fetched and stored
  uint64_t wire_bytes = 0;                // that this rank sent
  uint64_t wire_bytes_between_hosts = 0;  // of them, to other hosts
  bool stop_wished = false;               // by any rank
};

// Each field is written before the step or by one operation, and read by operations that come
// after that in the program.
struct RunningStep {
  StepResult result;
  bool wish_to_stop = false;   // this rank's
  int64_t update = 1;          // the number of this step, those not counted that were skipped
  double gradient_factor = 1;  // clipping, and the loss scale undone
  std::chrono::steady_clock::time_point clipped_at;
};

}  // namespace gxp
