// Device memory of a rank in addition to its step program: the kernels' own memory, and what no
// peak counts, for trials of products in the first step, code and graphs. Pure, but for
// GXP_CUDNN_SLICE_MIB of the environment, by which a run cuts its batches for cuDNN
// (kernels/cudnn_workspace.h).
#pragma once

#include <cstdint>

#include "lib/config/run_config.h"
#include "lib/program/run_plan.h"

namespace gxp {

struct DeviceTerms {
  uint64_t start_bytes = 0;       // taken before the first step and given back
  uint64_t workspace_bytes = 0;   // of kernels, kept through the run
  uint64_t reached_bytes = 0;     // in addition, if peers reach the device's memory
  bool holds_collectives = true;  // whether what collectives need is memory of the device
  uint64_t reserve_bytes = 0;     // additional memory, which the device's tracker does not count
};

// The width of the matrices whose product is timed at the start of a run
// (lib/train/step/backend.h).
size_t measured_width(bool on_gpu);

// The terms of a run; on a GPU with train.device = "cuda", or if `on_gpu` says so.
DeviceTerms terms_of_device(const RunConfig& config, const RunPlan& plan, bool on_gpu);
inline DeviceTerms terms_of_device(const RunConfig& config, const RunPlan& plan) {
  return terms_of_device(config, plan, config.train.device == TrainDevice::kCuda);
}

}  // namespace gxp
