// The largest micro-batch, sequence or layer count that fits in memory, and the fewest GPUs. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "lib/estimate/train_plan.h"

namespace gxp {

// A number in a plan that more memory allows to grow.
template <class Plan>
struct Quantity {
  std::string_view name;           // "batch"
  std::string_view setting;        // that holds it: "--micro-batch"
  int most;                        // that is tried
  int (*least)(const Plan& plan);  // that the other settings allow
  void (*set)(Plan& plan, int value);
};

struct Largest {
  int value = 0;            // 0: not even the least fits
  uint64_t bytes = 0;       // with that; without it, with the least
  uint64_t next_bytes = 0;  // with one more; 0: the most that is tried fits
};

// `bytes_of` rises with its argument, from `least` to `most`. Cost: some 2 log2(most) calls, none
// of them with much more than twice the answer.
Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int least,
                     int most);

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
