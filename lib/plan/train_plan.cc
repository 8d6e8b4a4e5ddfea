#include "lib/plan/train_plan.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/plan/model_states.h"

namespace gxp {
namespace {

// Why the plan cannot be; "" if it can.
std::string obstacle(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  const PublishedModel& model = *question.model;
  const int copy = plan.tensor * plan.pipeline * plan.context;
  if (plan.gpus % copy != 0)
    return fmt::format("a copy of the model takes {} GPUs, which does not divide {}", copy,
                       plan.gpus);
  if (plan.stage < 0 || plan.stage > kMostStage)
    return fmt::format("stage {}: ZeRO has stages 0 to {}", plan.stage, kMostStage);
  if (plan.shards() < 1 || plan.data_ranks() % plan.shards() != 0)
    return fmt::format("shards over {} of {} data-parallel ranks: {} does not divide {}",
                       plan.shards(), plan.data_ranks(), plan.shards(), plan.data_ranks());
  if (model.heads % uint64_t(plan.tensor) != 0)
    return fmt::format("{} attention heads cannot be cut over {} GPUs", model.heads, plan.tensor);
  // Embedding and head may take a layer's place each.
  if (uint64_t(plan.pipeline) * uint64_t(plan.interleave) > model.layers + 2)
    return fmt::format("{} stages of {} pieces are more than {} layers", plan.pipeline,
                       plan.interleave, model.layers);
  if (plan.interleave > 1 && plan.pipeline == 1)
    return "pieces of the model are interleaved over pipeline stages, and there is one";
  if (plan.format != NumberFormat::kBf16 && question.hardware->gpu->flops_8 == 0)
    return fmt::format("{} has no fp8; use bf16", question.hardware->gpu->name);
  if (plan.offload == StateOffload::kAll && plan.stage < 3)
    return "parameters in main memory are sharded ones; use stage 3";
  if (plan.offload != StateOffload::kNone && plan.stage < 1)
    return "an optimizer in main memory is a sharded one; use stage 1 to 3";
  return "";
}

}  // namespace

bool is_possible(const TrainCase& question) { return obstacle(question).empty(); }

void check(const TrainCase& question) {
  const std::string reason = obstacle(question);
  if (!reason.empty()) fail(ErrorKind::kUsage, "plan {} GPUs: {}", question.plan.gpus, reason);
}

}  // namespace gxp
