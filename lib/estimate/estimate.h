// What a GPU holds of a model that is trained one way, from its shape: model states, activations,
// and what a library keeps beside. And what to change if that is too much. Of a run of gxp itself
// replay.h tells, to the byte. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/published_models.h"
#include "lib/estimate/activations.h"
#include "lib/estimate/model_states.h"
#include "lib/estimate/runtime_bytes.h"
#include "lib/estimate/term.h"

namespace gxp {

struct EstimateQuestion {
  Training training;                         // of the whole model
  std::optional<PublishedModel> model = {};  // nothing: only its number of parameters is known
  Placement placement = {};                  // on all GPUs
  uint64_t sequence = 0;                     // tokens; 0: activations are left out
  uint64_t micro_batch = 1;                  // sequences
  Recompute recompute = Recompute::kNone;
  int tensor = 1;      // GPUs that share each layer
  int pipeline = 1;    // stages
  int interleave = 1;  // pieces of the model on each stage
  bool sequence_parallel = false;
  const Runtime* runtime = nullptr;  // whose buffers are added; null: none

  // GPUs that a copy of the model is cut over before anything is sharded.
  [[nodiscard]] int model_parallel() const { return tensor * pipeline; }
};

uint64_t sum_of(const std::vector<Term>& terms);

struct Estimate {
  ModelStates states;
  std::vector<Term> explained_states;
  std::vector<Term> activations;
  std::vector<Term> buffers;  // of the runtime

  [[nodiscard]] uint64_t total() const;
  [[nodiscard]] std::string_view binding() const;  // the part that has most: "optimizer"
};

// With a sequence there is a model.
Estimate estimate(const EstimateQuestion& question);

// What a GPU's memory may be filled with, or the GPUs that share the model.
struct EstimateQuantity {
  std::string_view name;    // "batch"
  std::string_view option;  // that sets it: "--micro-batch"
  int most;                 // that is tried
  int (*least)(const EstimateQuestion& question);
  void (*set)(EstimateQuestion& question, int value);
};

// batch, seq and layers: more of them take more.
std::span<const EstimateQuantity> estimate_quantities();
// kUsage with a near match if there is none of that name.
const EstimateQuantity& find_estimate_quantity(std::string_view name);

// The most GPUs that a job has, in whole copies of the model.
int most_gpus(const EstimateQuestion& question);

// The fewest GPUs on which it takes at most `limit_bytes` each, sharded over all of them; nothing
// if the most are too few.
std::optional<int> least_gpus(const EstimateQuestion& question, uint64_t limit_bytes);

struct EstimateChange {
  std::string what;    // "--recompute full"
  uint64_t bytes = 0;  // of a GPU, with it
};

// Up to three ways to make it fit, of few changes first: sharding more, computing activations
// again, smaller micro-batches, layers cut over the GPUs of a host, more GPUs; cheap ones before
// dear ones, none with a part that suffices.
std::vector<EstimateChange> changes_that_fit(const EstimateQuestion& question,
                                             uint64_t limit_bytes);

}  // namespace gxp
