// What a model on a GPU may have more of until the memory is full, and the fewest GPUs that it
// needs. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "lib/estimate/find_largest.h"
#include "lib/estimate/train_plan.h"

namespace gxp {

// A model of any size with its plan.
struct ModelPlan {
  PublishedModel model;
  TrainPlan plan;
};

// batch, seq and layers.
std::span<const Quantity<ModelPlan>> model_quantities();
// kUsage with a near match if there is none of that name.
const Quantity<ModelPlan>& find_model_quantity(std::string_view name);

// The fewest GPUs, in whole copies of the model, on which the plan takes at most `limit_bytes` each
// when sharded over all of them; nothing if kMostGpus are too few.
std::optional<int> least_gpus(const TrainCase& question, uint64_t limit_bytes);

}  // namespace gxp
