#include "lib/tools/planner/search.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/divisors.h"
#include "lib/tools/planner/predict_memory.h"
#include "lib/tools/planner/predict_time.h"

namespace gxp {
namespace {

using Visit = std::function<void(const TrainCase&)>;

class Walk {
 public:
  Walk(const TrainCase& base, const PlanGrid& grid, const Visit& visit)
      : question_(base), grid_(grid), visit_(visit) {}

  void cut_model() {
    TrainPlan& plan = question_.plan;
    for (const int tensor : grid_.tensors) {
      for (const int pipeline : grid_.pipelines) {
        for (const int interleave : grid_.interleaves) {
          plan.tensor = tensor;
          plan.pipeline = pipeline;
          plan.interleave = interleave;
          plan.shard = 0;
          if (is_possible(question_)) cut_batch();
        }
      }
    }
  }

 private:
  void cut_batch() {
    TrainPlan& plan = question_.plan;
    const auto replicas = uint64_t(plan.replicas());
    if (grid_.global_batch % replicas != 0) return;
    const uint64_t sequences = grid_.global_batch / replicas;
    for (const uint64_t micro_batch : divisors(sequences)) {
      plan.micro_batch = micro_batch;
      plan.accumulation = sequences / micro_batch;
      shard_states();
    }
  }

  void shard_states() {
    TrainPlan& plan = question_.plan;
    for (const int stage : grid_.stages) {
      plan.stage = stage;
      for (const uint64_t shard : divisors(uint64_t(plan.data_ranks()))) {
        // Stage 0 shards nothing, so one size is enough.
        if (stage == 0 && shard > 1) break;
        plan.shard = int(shard);
        save_memory();
      }
    }
  }

  void save_memory() {
    for (const Recompute recompute : grid_.recomputes) {
      for (const StateOffload offload : grid_.offloads) {
        question_.plan.recompute = recompute;
        question_.plan.offload = offload;
        if (is_possible(question_)) visit_(question_);
      }
    }
  }

  TrainCase question_;
  const PlanGrid& grid_;
  const Visit& visit_;
};

using Variants = std::vector<PlanVariant<TrainPlan>>;

// The plan with each of these values of one setting.
template <class Number>
Variants vary(const TrainPlan& plan, std::string_view setting, Number TrainPlan::*member,
              const std::vector<Number>& values) {
  Variants variants;
  for (const Number value : values)
    add_variant(variants, plan, setting, fmt::to_string(value),
                [&](TrainPlan& p) { p.*member = value; });
  return variants;
}

// The plan with each later word of one setting.
template <class Enum>
Variants vary_word(const TrainPlan& plan, std::string_view setting, Enum TrainPlan::*member,
                   const std::array<std::string_view, 3>& words) {
  Variants variants;
  for (size_t i = size_t(plan.*member) + 1; i < words.size(); ++i)
    add_variant(variants, plan, setting, std::string(words[i]),
                [&](TrainPlan& p) { p.*member = Enum(i); });
  return variants;
}

// 2, 4, ... times `value`, up to `most`.
std::vector<int> doublings(int value, int most) {
  std::vector<int> values;
  for (int64_t next = int64_t{2} * value; next <= most; next *= 2) values.push_back(int(next));
  return values;
}

Variants raise_stage(const TrainPlan& plan) {
  std::vector<int> stages;
  for (int stage = plan.stage + 1; stage <= kMostStage; ++stage) stages.push_back(stage);
  return vary(plan, "stage", &TrainPlan::stage, stages);
}

Variants shard_over_all(const TrainPlan& plan) {
  Variants variants;
  if (plan.stage > 0 && plan.shards() < plan.data_ranks())
    add_variant(variants, plan, "shard", "", [](TrainPlan& p) { p.shard = 0; });
  return variants;
}

Variants recompute_more(const TrainPlan& plan) {
  return vary_word(plan, "recompute", &TrainPlan::recompute, kRecomputeNames);
}

Variants cut_micro_batch(const TrainPlan& plan) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = plan.micro_batch / 2; size >= 1; size /= 2) sizes.push_back(size);
  return vary(plan, "micro-batch", &TrainPlan::micro_batch, sizes);
}

Variants cut_layers(const TrainPlan& plan) {
  return vary(plan, "tensor-parallel", &TrainPlan::tensor, doublings(plan.tensor, 8));
}

Variants cut_model(const TrainPlan& plan) {
  return vary(plan, "pipeline-parallel", &TrainPlan::pipeline, doublings(plan.pipeline, 16));
}

Variants offload_more(const TrainPlan& plan) {
  return vary_word(plan, "offload", &TrainPlan::offload, kOffloadNames);
}

Variants take_more_gpus(const TrainPlan& plan) {
  const int64_t most = std::min<int64_t>(int64_t{1024} * plan.gpus, kMostGpus);
  return vary(plan, "gpus", &TrainPlan::gpus, doublings(plan.gpus, int(most)));
}

double seconds_of(const TrainCase& question) {
  return question.hardware == nullptr ? 0 : predict_time(question).seconds();
}

// Whether `sequences` of a step can be dealt out to the copies of the model; if so, in as many
// micro-batches as that takes.
bool deal_out(uint64_t sequences, TrainPlan& plan) {
  const uint64_t each = plan.micro_batch * uint64_t(plan.replicas());
  if (each == 0 || sequences % each != 0) return false;
  plan.accumulation = sequences / each;
  return true;
}

}  // namespace

PlanGrid full_grid(const TrainCase& base, uint64_t global_batch) {
  PlanGrid grid{.global_batch = global_batch,
                .stages = {0, 1, 2, 3},
                .interleaves = {1, 2, 4},
                .recomputes = {Recompute::kNone, Recompute::kSelective, Recompute::kFull},
                .offloads = {StateOffload::kNone, StateOffload::kOptimizer, StateOffload::kAll}};
  for (int tensor = 1; tensor <= std::min(8, base.hardware->links.gpus_per_domain); tensor *= 2)
    grid.tensors.push_back(tensor);
  for (int pipeline = 1; pipeline <= 16; pipeline *= 2) grid.pipelines.push_back(pipeline);
  return grid;
}

PlanCost cost_of(const TrainCase& question) {
  return {predict_memory(question).total(), seconds_of(question)};
}

void for_each_plan(const TrainCase& base, const PlanGrid& grid, const Visit& visit) {
  Walk(base, grid, visit).cut_model();
}

SearchResult search_plans(const TrainCase& base, const PlanGrid& grid, uint64_t limit_bytes) {
  SearchResult result;
  std::vector<CostedPlan<TrainPlan>> fitting;
  for_each_plan(base, grid, [&](const TrainCase& question) {
    ++result.tried;
    const uint64_t bytes = predict_memory(question).total();
    if (bytes > limit_bytes) return;
    fitting.push_back({question.plan, {bytes, seconds_of(question)}});
  });
  result.fitting = fitting.size();
  result.pareto = pareto_of(std::move(fitting));
  return result;
}

std::vector<CostedPlan<TrainPlan>> plans_that_fit(const TrainCase& question, uint64_t limit_bytes) {
  constexpr size_t kMostWays = 3;
  const uint64_t sequences = question.plan.sequences_per_step();
  const auto cost_if_it_fits = [&](TrainPlan& plan) -> std::optional<PlanCost> {
    TrainCase changed = question;
    changed.plan = plan;
    if (!is_possible(changed) || (sequences > 0 && !deal_out(sequences, plan))) return std::nullopt;
    changed.plan = plan;
    const uint64_t bytes = predict_memory(changed).total();
    if (bytes > limit_bytes) return std::nullopt;
    return PlanCost{bytes, seconds_of(changed)};
  };
  const PlanSpace<TrainPlan> space{{raise_stage, shard_over_all, recompute_more, cut_micro_batch,
                                    cut_layers, cut_model, offload_more, take_more_gpus},
                                   cost_if_it_fits};
  return plans_that_fit(space, question.plan, kMostWays);
}

}  // namespace gxp
