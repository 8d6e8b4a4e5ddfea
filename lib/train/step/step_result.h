// The results of a step, and the values that its operations pass to each other while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace gxp {

struct StepResult {
  int64_t step = 0;      // from 1
  double loss = 0;       // mean over all targets of the step that count, on all ranks
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double loss_scale = 1;         // of the gradients; 1 without fp16
  bool skipped = false;          // nothing was updated
  std::string why_skipped = {};  // "gradients overflow at loss scale 65536"
  bool rolls_back = false;       // the caller is to go back to the newest checkpoint
  uint64_t tokens = 0;           // of the step, on all ranks
  uint64_t targets = 0;          // that count, of as many: those without a label -100 (dataset.h)
  double seconds = 0;
  double comm_seconds = 0;                // busy time of this rank's comm lane
  double update_seconds = 0;              // from the decision on clipping to the step's end
  double offload_seconds = 0;             // busy time of this rank's offload lane
  uint64_t offload_bytes = 0;             // fetched and stored by this rank
  uint64_t wire_bytes = 0;                // sent by this rank
  uint64_t wire_bytes_between_hosts = 0;  // the part to other hosts
  bool stop_requested = false;            // by any rank
};

// Each field is written before the step or by one operation, and read by operations that come
// after that in the program.
struct RunningStep {
  StepResult result;
  bool requests_stop = false;  // this rank's
  int64_t update = 1;          // number of this update, without skipped steps
  double gradient_factor = 1;  // clipping, divided by the loss scale
  std::chrono::steady_clock::time_point clipped_at;
  // Called before and after the rank waits for its data.
  std::function<void(bool waits)> notes_data = [](bool) {};
};

}  // namespace gxp
