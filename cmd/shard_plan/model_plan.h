// gxp shard-plan MODEL: memory and time of a published model, or of a file's, on published
// hardware. Starts no ranks, touches no device.
#pragma once

#include <cstdint>
#include <string>

#include "lib/report/report.h"
#include "lib/tools/planner/train_plan.h"

namespace CLI {
class App;
}

namespace gxp {

struct ModelPlanOptions {
  std::string cluster;  // of the table of machines, or a cluster file
  std::string gpu;      // with a file
  std::string software = "megatron";
  std::string limit;
  bool search = false;
  int gpus = 0;          // 0: all of a cluster file, else 8
  int sequence = 0;      // 0: what the model has, at most 8192
  int global_batch = 0;  // 0: by micro-batch and accumulation
  TrainPlan plan;        // the rest
};

void add_model_plan_options(CLI::App& app, ModelPlanOptions& options);

// kUsage for one of these options with a run file, and for any other of `app` with a model.
void check_plan_options(const CLI::App& app, const std::string& subject, bool is_run);

// Prints the plan's facts, parts[] of its time, memory[], and, where it does not fit, changes[];
// with --search, plans[] instead. Errors: kUsage; as read_model_file() and load_cluster().
int plan_model(const std::string& model, const ModelPlanOptions& options, Format format);

// The tables.

// Facts: parameters, gpus, tokens_per_step, step_seconds, tokens_per_s_gpu, model_tflops_gpu,
// mfu_percent, comm_seconds, exposed_comm_seconds, tokens_of_micro_batch, tokens_to_hide,
// peak_bytes, limit_bytes, fits, binding. parts[] of {part, seconds, percent}; memory[] of {part,
// bytes}; where it does not fit, changes[] of {change, peak_bytes, saved_bytes, step_seconds,
// more_seconds}.
void add_plan(Report& report, const TrainCase& question, uint64_t limit_bytes);

// Facts: global_batch, limit_bytes, tried, fitting, search_seconds; plans[] of {peak_bytes,
// step_seconds, tokens_per_s_gpu, stage, shard, tensor, pipeline, interleave, micro_batch,
// accumulation, recompute, offload}: from the smallest on, each faster than all before; the last is
// the fastest that fits.
void add_search(Report& report, const TrainCase& question, uint64_t global_batch,
                uint64_t limit_bytes);

}  // namespace gxp
