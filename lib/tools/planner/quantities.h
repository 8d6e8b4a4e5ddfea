// The largest micro-batch, sequence or layer count that fits in memory, and the fewest GPUs. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "lib/replay/quantity.h"
#include "lib/tools/planner/train_plan.h"

namespace gxp {

// A model of any size with its plan.
struct ModelPlan {
  PublishedModel model;
  TrainPlan plan;
};

// batch, seq and layers.
std::span<const Quantity<ModelPlan>> model_quantities();

// The fewest GPUs, in whole copies of the model, on which the plan takes at most `limit_bytes` each
// when sharded over all of them; nothing if kMostGpus are too few.
std::optional<int> least_gpus(const TrainCase& question, uint64_t limit_bytes);

}  // namespace gxp
