// The tables of gxp shard-plan MODEL.
#pragma once

#include <cstdint>

#include "lib/estimate/train_plan.h"
#include "lib/report/report.h"

namespace gxp {

// Facts: parameters, gpus, tokens_per_step, step_seconds, tokens_per_s_gpu, model_tflops_gpu,
// mfu_percent, comm_seconds, exposed_comm_seconds, tokens_of_micro_batch, tokens_to_hide,
// peak_bytes, limit_bytes, fits, binding. parts[] of {part, seconds, percent}; memory[] of {part,
// bytes}; where it does not fit, changes[] of {change, peak_bytes, saved_bytes, step_seconds,
// more_seconds}.
void add_plan(Report& report, const TrainCase& question, uint64_t limit_bytes);

// Facts: tried, fitting, seconds_of_search; plans[] of {peak_bytes, step_seconds, tokens_per_s_gpu,
// stage, shard, tensor, pipeline, interleave, micro_batch, accumulation, recompute, offload}: from
// the smallest on, each faster than all before; the last is the fastest that fits.
void add_search(Report& report, const TrainCase& question, uint64_t global_batch,
                uint64_t limit_bytes);

}  // namespace gxp
