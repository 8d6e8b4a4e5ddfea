#include "lib/estimate/train_plan.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/estimate/model_states.h"

namespace gxp {
namespace {

// What would overflow if it were counted in whole bytes or tokens.
std::string excess(const TrainPlan& plan, const PublishedModel& model) {
  const double tokens = double(plan.sequence) * double(plan.micro_batch);
  const double width = 40.0 * double(model.hidden + model.mlp + model.heads * model.head_size) +
                       5.0 * double(model.heads) * double(plan.sequence);
  if (tokens * width * double(model.layers + 1) > 1e18 || tokens * double(model.vocabulary) > 1e17)
    return "the activations pass 1e18 bytes; take a shorter sequence or a smaller micro-batch";
  if (tokens * double(plan.accumulation) * plan.gpus > 1e15)
    return "a step would have more than 1e15 tokens; accumulate less";
  return "";
}

std::string parallel_obstacle(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  const PublishedModel& model = *question.model;
  if (plan.tensor > question.hardware->links.gpus_per_domain)
    return fmt::format("a layer over {} GPUs would leave the {} that a host or its NVLink joins",
                       plan.tensor, question.hardware->links.gpus_per_domain);
  if (model.heads % uint64_t(plan.tensor) != 0)
    return fmt::format("{} attention heads cannot be cut over {} GPUs", model.heads, plan.tensor);
  if (plan.sequence % uint64_t(plan.context) != 0)
    return fmt::format("a sequence of {} cannot be cut over {} GPUs", plan.sequence, plan.context);
  // Embedding and head may take a layer's place each.
  if (uint64_t(plan.pipeline) * uint64_t(plan.interleave) > model.layers + 2)
    return fmt::format("{} stages of {} pieces are more than {} layers", plan.pipeline,
                       plan.interleave, model.layers);
  if (plan.interleave > 1 && plan.pipeline == 1)
    return "pieces of the model are interleaved over pipeline stages, and there is one";
  return excess(plan, model);
}

// Why the plan cannot be; "" if it can.
std::string obstacle(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  const int64_t copy = int64_t{plan.tensor} * plan.pipeline * plan.context;
  if (plan.gpus % copy != 0)
    return fmt::format("a copy of the model takes {} GPUs, which does not divide {}", copy,
                       plan.gpus);
  if (plan.stage < 0 || plan.stage > kMostStage)
    return fmt::format("stage {}: ZeRO has stages 0 to {}", plan.stage, kMostStage);
  if (plan.shards() < 1 || plan.data_ranks() % plan.shards() != 0)
    return fmt::format("shards over {} of {} data-parallel ranks: {} does not divide {}",
                       plan.shards(), plan.data_ranks(), plan.shards(), plan.data_ranks());
  if (plan.format != NumberFormat::kBf16 && question.hardware->gpu->flops_8 == 0)
    return fmt::format("{} has no fp8; use bf16", question.hardware->gpu->name);
  if (plan.offload == StateOffload::kAll && plan.stage < 3)
    return "parameters in main memory are sharded ones; use stage 3";
  if (plan.offload != StateOffload::kNone && plan.stage < 1)
    return "an optimizer in main memory is a sharded one; use stage 1 to 3";
  return parallel_obstacle(question);
}

}  // namespace

bool is_possible(const TrainCase& question) { return obstacle(question).empty(); }

void check(const TrainCase& question) {
  const std::string reason = obstacle(question);
  if (!reason.empty()) fail(ErrorKind::kUsage, "plan {} GPUs: {}", question.plan.gpus, reason);
}

}  // namespace gxp
