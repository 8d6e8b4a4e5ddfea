// Which way to train a model is the fastest that fits: every plan of a grid, its memory and time by
// predict_memory.h and predict_time.h; and what to change in a plan that does not fit. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/replay/plan_search.h"
#include "lib/tools/planner/train_plan.h"

namespace gxp {

// The grid: all combinations; those that are not possible are passed over. Each trains the same
// sequences in a step: accumulation follows from the micro-batch.
struct PlanGrid {
  uint64_t global_batch = 0;  // sequences of a step
  std::vector<int> stages = {};
  std::vector<int> tensors = {};
  std::vector<int> pipelines = {};
  std::vector<int> interleaves = {};
  std::vector<Recompute> recomputes = {};
  std::vector<StateOffload> offloads = {};
  // Shards: every divisor of the data-parallel ranks; micro-batches: every divisor of a rank's
  // sequences.
};

// Stages 0 to 3, every recomputation and offload, tensor parallelism within a NVLink domain up to
// 8, pipelines of up to 16 stages, with up to 4 pieces each.
PlanGrid full_grid(const TrainCase& base, uint64_t global_batch);

// Calls `visit` with each possible plan of the grid, on the model, hardware and software of `base`.
void for_each_plan(const TrainCase& base, const PlanGrid& grid,
                   const std::function<void(const TrainCase&)>& visit);

struct SearchResult {
  uint64_t tried = 0;    // possible plans
  uint64_t fitting = 0;  // within the limit
  std::vector<CostedPlan<TrainPlan>> pareto;
};

// Sizes that the grid does not vary are those of `base`. Cost: some microseconds a plan.
SearchResult search_plans(const TrainCase& base, const PlanGrid& grid, uint64_t limit_bytes);

// Bytes, and seconds if the hardware is known.
PlanCost cost_of(const TrainCase& question);

// Up to three ways to make a plan fit (plan_search.h), through: the stage, the size of shards,
// recomputation, the micro-batch, tensor parallelism within a host of 8, pipeline parallelism,
// offload, the number of GPUs. If accumulation is given, all plans train the same number of
// sequences per step. Each changed setting is named as the option of gxp memcalc and gxp
// shard-plan; "shard" has the value "" for shards over all ranks.
std::vector<CostedPlan<TrainPlan>> plans_that_fit(const TrainCase& question, uint64_t limit_bytes);

}  // namespace gxp
