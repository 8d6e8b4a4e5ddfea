#include "lib/plan/predict_memory.h"

#include <algorithm>

#include "lib/plan/model_states.h"

namespace gxp {
namespace {

// With PyTorch 2.1 on A100, all kernels loaded, after the first collective (stas00/ml-engineering).
constexpr uint64_t kContextBytes = 2'500'000'000;

void add_states(const TrainCase& question, PlanMemory& memory) {
  const TrainPlan& plan = question.plan;
  const uint64_t parts = uint64_t(plan.tensor) * uint64_t(plan.pipeline);
  // Found once: a search asks 10^5 times.
  static const Training kAdamW{0, find_precision("bf16"), find_optimizer_state("adamw")};
  Training training = kAdamW;
  training.parameters = (parameter_count(*question.model) + parts - 1) / parts;
  const ModelStates states =
      model_states(training, {.stage = plan.stage, .gpus = plan.data_ranks(), .shard = plan.shard});
  memory.parameters = plan.offload == StateOffload::kAll ? 0 : states.parameters;
  memory.gradients = states.gradients;
  memory.optimizer = plan.offload == StateOffload::kNone ? states.optimizer() : 0;
}

// torchtitan's policy by operation keeps six tenths of a Llama block (its Llama 3 8B at 8192 tokens
// peaks at 77 GiB, of which states, logits and context are known).
constexpr double kSelectiveByOperation = 0.6;

void add_activations(const TrainCase& question, PlanMemory& memory) {
  const TrainPlan& plan = question.plan;
  ActivationShape shape =
      activation_shape(*question.model, plan.sequence / uint64_t(plan.context), plan.micro_batch);
  shape.tensor_parallel = uint64_t(plan.tensor);
  shape.sequence_parallel = plan.sequence_parallel;
  shape.pipeline_parallel = uint64_t(plan.pipeline);
  shape.interleave = uint64_t(plan.interleave);
  const bool stored = question.software->attention == Attention::kStored;
  shape.dropout = stored;  // what is older than fused attention trained with it
  // Fused attention keeps no scores, as selective recomputation.
  const Recompute kept =
      plan.recompute == Recompute::kNone && !stored ? Recompute::kSelective : plan.recompute;
  memory.activations = kept_activations(shape, kept);
  if (plan.recompute == Recompute::kSelective && !stored)
    memory.activations = uint64_t(double(memory.activations) * kSelectiveByOperation);
  // The layer that is computed again has its scores only where they are stored.
  if (plan.recompute == Recompute::kFull) {
    shape.layers = 1;
    shape.interleave = 1;
    memory.activations += stored ? live_layer(shape, Recompute::kFull)
                                 : kept_activations(shape, Recompute::kSelective);
  }
  // Of the last stage; with several stages the first has more.
  if (plan.pipeline == 1)
    memory.logits = logits(shape, uint64_t(question.software->logit_bytes)) / uint64_t(plan.tensor);
}

// Of the unit that runs two copies and of the next one, in 16 bits, and float32 gradients to
// reduce. A pipeline keeps all that it has gathered, and gradients until the last micro-batch.
uint64_t gathered_bytes(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  if (plan.stage != 3 || plan.shards() == 1) return 0;
  if (plan.pipeline > 1)
    return (2 + 4) * (parameter_count(*question.model) / uint64_t(plan.tensor * plan.pipeline));
  return (3 * 2 + 4) * block_parameter_count(*question.model) / uint64_t(plan.tensor);
}

}  // namespace

PlanMemory predict_memory(const TrainCase& question) {
  PlanMemory memory;
  add_states(question, memory);
  add_activations(question, memory);
  memory.gathered = gathered_bytes(question);
  memory.context = kContextBytes;
  return memory;
}

std::string_view binding_part(const PlanMemory& memory) {
  return std::ranges::max_element(kMemoryParts, {},
                                  [&](const MemoryPart& part) { return memory.*part.bytes; })
      ->name;
}

}  // namespace gxp
