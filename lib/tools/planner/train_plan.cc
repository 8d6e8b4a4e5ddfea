#include "lib/tools/planner/train_plan.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace gxp {
namespace {

// Bytes of one layer per token, times t, which keeps them whole numbers: first those that only
// sequence parallelism divides.
uint64_t token_bytes(const PublishedModel& model, const ActivationBatch& batch,
                     Recompute recompute) {
  const uint64_t h = model.hidden;
  const uint64_t whole = batch.sequence_parallel ? 1 : batch.tensor_parallel;
  if (recompute == Recompute::kFull) return 2 * h * whole;
  const bool gated = model.kind == BlockKind::kLlama;
  const uint64_t scores =
      recompute == Recompute::kNone ? (gated ? 2 : 5) * model.heads * batch.sequence : uint64_t{0};
  if (!gated) return ((batch.dropout ? 10 : 8) * whole + 24) * h + scores;
  const uint64_t queries_and_keys = (model.heads + model.key_value_heads) * model.head_size;
  return 8 * whole * h + 4 * queries_and_keys + 6 * model.mlp + scores;
}

// Why bytes or tokens would overflow 64 bits; "" if they do not.
std::string excess(const TrainPlan& plan, const PublishedModel& model) {
  const double tokens = double(plan.sequence) * double(plan.micro_batch);
  const double width = 40.0 * double(model.hidden + model.mlp + model.heads * model.head_size) +
                       5.0 * double(model.heads) * double(plan.sequence);
  if (tokens * width * double(model.layers + 1) > 1e18 || tokens * double(model.vocabulary) > 1e17)
    return "activations exceed 1e18 bytes; use a shorter sequence or a smaller micro-batch";
  if (tokens * double(plan.accumulation) * plan.gpus > 1e15)
    return "a step would have more than 1e15 tokens; accumulate less";
  return "";
}

// What depends on the model's shape.
std::string model_obstacle(const PublishedModel& model, const TrainPlan& plan) {
  if (model.heads % uint64_t(plan.tensor) != 0)
    return fmt::format("{} attention heads cannot be cut over {} GPUs", model.heads, plan.tensor);
  // Embedding and head may take a layer's place each.
  if (uint64_t(plan.pipeline) * uint64_t(plan.interleave) > model.layers + 2)
    return fmt::format("{} stages of {} pieces are more than {} layers", plan.pipeline,
                       plan.interleave, model.layers);
  return excess(plan, model);
}

std::string hardware_obstacle(const Hardware& hardware, const TrainPlan& plan) {
  if (plan.format != NumberFormat::kBf16 && hardware.gpu->flops_8 == 0)
    return fmt::format("{} has no fp8; use bf16", hardware.gpu->name);
  if (plan.format == NumberFormat::kMxfp8 && hardware.gpu->generation->mxfp8_bytes == 0)
    return fmt::format("{} has no mxfp8, which came with Blackwell; use fp8", hardware.gpu->name);
  if (plan.tensor > hardware.links.gpus_per_domain)
    return fmt::format(
        "tensor parallelism over {} GPUs exceeds the {} GPUs of a host or NVLink "
        "domain",
        plan.tensor, hardware.links.gpus_per_domain);
  return "";
}

std::string sharding_obstacle(const TrainPlan& plan) {
  if (plan.stage < 0 || plan.stage > kMostStage)
    return fmt::format("stage {}: ZeRO has stages 0 (nothing sharded) to {} (parameters too)",
                       plan.stage, kMostStage);
  if (plan.shards() < 1 || plan.data_ranks() % plan.shards() != 0)
    return fmt::format("shards over {} of {} data-parallel ranks: {} does not divide {}",
                       plan.shards(), plan.data_ranks(), plan.shards(), plan.data_ranks());
  if (plan.offload == StateOffload::kAll && plan.stage < 3)
    return "only sharded parameters can be offloaded; use stage 3";
  if (plan.offload != StateOffload::kNone && plan.stage < 1)
    return "only a sharded optimizer can be offloaded; use stage 1 to 3";
  return "";
}

// Why the plan is not possible; "" if it is.
std::string obstacle(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  if (plan.gpus < 1 || plan.gpus > kMostGpus)
    return fmt::format("a job has from 1 to {}", kMostGpus);
  const int64_t copy = int64_t{plan.tensor} * plan.pipeline * plan.context;
  if (plan.gpus % copy != 0)
    return fmt::format("a copy of the model takes {} GPUs, which does not divide {}", copy,
                       plan.gpus);
  if (plan.sequence % uint64_t(plan.context) != 0)
    return fmt::format("a sequence of {} cannot be cut over {} GPUs", plan.sequence, plan.context);
  if (plan.interleave > 1 && plan.pipeline == 1)
    return "--interleave needs several pipeline stages";
  std::string reason = sharding_obstacle(plan);
  if (reason.empty() && question.hardware != nullptr)
    reason = hardware_obstacle(*question.hardware, plan);
  if (reason.empty() && question.model != nullptr) reason = model_obstacle(*question.model, plan);
  return reason;
}

}  // namespace

uint64_t layer_activations(const PublishedModel& model, const ActivationBatch& batch,
                           Recompute recompute) {
  const uint64_t tokens = batch.sequence * batch.micro_batch;
  return tokens * token_bytes(model, batch, recompute) / batch.tensor_parallel;
}

std::string beyond_positions(const PublishedModel& model, uint64_t sequence) {
  if (sequence <= model.positions) return "";
  const bool has_table = model.kind == BlockKind::kGpt && model.position_table;
  return fmt::format("a sequence of {} exceeds the model's {} positions{}", sequence,
                     model.positions,
                     has_table ? ", which are learned: it needs a model with more of them" : "");
}

uint64_t parameters_of(const TrainCase& question) {
  return question.model == nullptr ? question.parameters : parameter_count(*question.model);
}

bool is_possible(const TrainCase& question) { return obstacle(question).empty(); }

void check(const TrainCase& question) {
  const std::string reason = obstacle(question);
  if (!reason.empty()) fail(ErrorKind::kUsage, "plan {} GPUs: {}", question.plan.gpus, reason);
}

}  // namespace gxp
