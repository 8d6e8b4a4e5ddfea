// Whether a run on a GPU records its kernels as CUDA graphs.
#pragma once

#include <string>

#include "lib/arch/architecture.h"
#include "lib/config/run_config.h"
#include "lib/device/stream.h"

namespace gxp {

struct GraphChoice {
  bool records = false;
  WithoutRecording otherwise = WithoutRecording::kWarn;
  std::string reason;  // for the log
};

// Follows train.cuda_graphs. auto: records where a block's forward pass of a micro-batch takes less
// than 1 ms at `flops_per_s`, the GPU's rate. That pass has about ten kernels, and the host starts
// one in a few microseconds. A longer pass keeps the GPU busy anyway, so that recordings, which
// take driver memory, gain a few percent at most. What cannot be recorded is then run without; with
// "on" it is an error.
GraphChoice choose_graphs(const RunConfig& config, const Architecture& architecture,
                          size_t positions, double flops_per_s);

}  // namespace gxp
