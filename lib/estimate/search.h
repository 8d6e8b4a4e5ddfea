// Which way to train a model is the fastest that fits: every plan of a space, its memory and time
// by predict_memory.h and predict_time.h; and what to change in a plan that does not fit. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/estimate/train_plan.h"

namespace gxp {

// All combinations; those that are not possible are passed over. Each trains the same sequences in
// a step: accumulation follows from the micro-batch.
struct SearchSpace {
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
SearchSpace full_space(const TrainCase& base, uint64_t global_batch);

struct Candidate {
  TrainPlan plan;
  uint64_t bytes = 0;  // of a GPU
  double seconds = 0;  // of a step
};

Candidate evaluate(const TrainCase& question);

struct SearchResult {
  uint64_t tried = 0;    // possible plans
  uint64_t fitting = 0;  // within the limit
  // Those within the limit than which none is both smaller and faster, from the smallest on.
  std::vector<Candidate> pareto;
};

// Sizes that `base` has and the space does not vary stay. Cost: some microseconds a plan.
SearchResult search_plans(const TrainCase& base, const SearchSpace& space, uint64_t limit_bytes);

struct Change {
  std::string what;  // "recompute full; micro-batch 2"
  Candidate result;
};

// The fastest ways to make a plan fit that keep the sequences of a step, the fastest first: single
// changes; if fewer than `most` of them do, also two, then three at once. Empty if nothing does.
std::vector<Change> cheapest_changes(const TrainCase& question, uint64_t limit_bytes, size_t most);

}  // namespace gxp
