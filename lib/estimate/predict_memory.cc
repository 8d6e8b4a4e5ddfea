#include "lib/estimate/predict_memory.h"

#include <algorithm>

#include "lib/estimate/model_states.h"

namespace gxp {
namespace {

// With PyTorch 2.1 on A100, all kernels loaded, after the first collective (stas00/ml-engineering).
constexpr uint64_t kContextBytes = 2'500'000'000;

// One of a pipeline's stages: the first keeps most micro-batches, the last has the logits.
class Stage {
 public:
  Stage(const TrainCase& question, bool last)
      : plan_(question.plan),
        model_(*question.model),
        software_(*question.software),
        is_last_(last || question.plan.pipeline == 1) {}

  [[nodiscard]] PlanMemory memory() const {
    PlanMemory memory;
    add_states(memory);
    memory.activations = activations();
    if (is_last_) memory.logits = logit_bytes();
    memory.gathered = gathered();
    memory.context = kContextBytes;
    return memory;
  }

 private:
  void add_states(PlanMemory& memory) const;
  [[nodiscard]] ActivationShape shape() const;
  [[nodiscard]] double in_flight() const;
  [[nodiscard]] uint64_t kept_by_operation() const;
  [[nodiscard]] uint64_t kept() const;
  [[nodiscard]] uint64_t activations() const;
  [[nodiscard]] uint64_t logit_bytes() const;
  [[nodiscard]] uint64_t gathered() const;
  [[nodiscard]] uint64_t tokens() const {
    return plan_.sequence / uint64_t(plan_.context) * plan_.micro_batch;
  }
  [[nodiscard]] bool stores_scores() const { return software_.attention == Attention::kStored; }
  [[nodiscard]] uint64_t tensor() const { return uint64_t(plan_.tensor); }

  const TrainPlan& plan_;
  const PublishedModel& model_;
  const Software& software_;
  bool is_last_;
};

void Stage::add_states(PlanMemory& memory) const {
  const uint64_t parts = tensor() * uint64_t(plan_.pipeline);
  // Found once: a search asks 10^5 times.
  static const Training kAdamW{0, find_precision("bf16"), find_optimizer_state("adamw")};
  Training training = kAdamW;
  training.parameters = (parameter_count(model_) + parts - 1) / parts;
  const ModelStates states = model_states(
      training, {.stage = plan_.stage, .gpus = plan_.data_ranks(), .shard = plan_.shard});
  memory.parameters = plan_.offload == StateOffload::kAll ? 0 : states.parameters;
  memory.gradients = states.gradients;
  memory.optimizer = plan_.offload == StateOffload::kNone ? states.optimizer() : 0;
}

ActivationShape Stage::shape() const {
  ActivationShape shape =
      activation_shape(model_, plan_.sequence / uint64_t(plan_.context), plan_.micro_batch);
  shape.tensor_parallel = tensor();
  shape.sequence_parallel = plan_.sequence_parallel;
  shape.dropout = stores_scores();  // what is older than fused attention trained with it
  return shape;
}

// Micro-batches whose activations the stage keeps at a time, of all its pieces; no more than there
// are. Narayanan et al., arXiv:2104.04473: a stage has passed on as many pieces as this before its
// first comes back.
double Stage::in_flight() const {
  const double stages = plan_.pipeline;
  const double pieces = plan_.interleave;
  const double ahead = is_last_ ? 1 : stages;
  const double passed = pieces == 1 ? ahead : (pieces - 1) * stages + 2 * ahead - 1;
  return std::min(passed / pieces, double(plan_.accumulation));
}

// torchtitan's policy by operation keeps the output of attention and of every second product, in
// the order in which they run; not compiled, also the MLP's, which no backward pass reads. A Llama
// block's are those of q, v, and the first of the MLP; a GPT's of q, k, v together, and the first.
uint64_t Stage::kept_by_operation() const {
  const uint64_t queries = model_.heads * model_.head_size;
  const uint64_t keys = model_.key_value_heads * model_.head_size;
  const bool gated = model_.kind == BlockKind::kLlama;
  const uint64_t products = queries + (gated ? keys : 2 * keys) + model_.mlp;
  const uint64_t inside = 2 * (products + queries) + 4 * model_.heads;  // and attention's sums
  uint64_t between = 2 * model_.hidden;
  if (gated && software_.elementwise == Elementwise::kEager) between *= 2;
  const uint64_t whole = plan_.sequence_parallel ? 1 : tensor();
  return tokens() * model_.layers * (between * whole + inside) / tensor();
}

// Of all layers and one micro-batch. Fused attention keeps no scores, as selective recomputation.
uint64_t Stage::kept() const {
  if (plan_.recompute == Recompute::kSelective && !stores_scores()) return kept_by_operation();
  const bool scores = plan_.recompute == Recompute::kNone && stores_scores();
  if (plan_.recompute == Recompute::kFull) return kept_activations(shape(), Recompute::kFull);
  return kept_activations(shape(), scores ? Recompute::kNone : Recompute::kSelective);
}

// And what a block has while it is computed again.
uint64_t Stage::activations() const {
  auto bytes = uint64_t(double(kept()) * in_flight() / plan_.pipeline);
  const bool live = plan_.recompute == Recompute::kFull ||
                    (plan_.recompute == Recompute::kSelective && !stores_scores());
  if (!live) return bytes;
  ActivationShape block = shape();
  block.layers = 1;
  bytes += stores_scores() ? live_layer(block, Recompute::kFull)
                           : kept_activations(block, Recompute::kSelective);
  // The inputs of attention and MLP, gathered over the GPUs that share them; overlapped, piece by
  // piece.
  if (plan_.tensor > 1 && software_.fsdp2 && !software_.overlaps_tensor)
    bytes += 2 * 2 * tokens() * model_.hidden;
  return bytes;
}

// DTensor's loss over GPUs that share the vocabulary has one more float32 copy; their common input
// is gathered. PyTorch's pipeline keeps the logits of all micro-batches, and joins copies of them.
uint64_t Stage::logit_bytes() const {
  auto each = uint64_t(software_.logit_bytes);
  if (software_.fsdp2 && plan_.tensor > 1) each += 4;
  if (software_.fsdp2 && plan_.pipeline > 1) each += (2 + 2) * plan_.accumulation;
  const uint64_t input = software_.fsdp2 && plan_.tensor > 1 ? 2 * tokens() * model_.hidden : 0;
  return tokens() * model_.vocabulary * each / tensor() + input;
}

// FSDP2, whose root has what is in no block: 16-bit copies of the root and of two blocks, and what
// they were gathered into, which is memory of a stream of its own and not used for anything else
// (the gradients' input is where activations were). Others: of the unit that runs two copies and of
// the next one, and gradients to reduce. A pipeline keeps all that it has gathered, and float32
// gradients of one piece until its last micro-batch.
uint64_t Stage::gathered() const {
  if (plan_.stage != 3 || plan_.shards() == 1) return 0;
  const uint64_t block = block_parameter_count(model_) / tensor();
  if (plan_.pipeline > 1) {
    const uint64_t stage = parameter_count(model_) / (tensor() * uint64_t(plan_.pipeline));
    return 2 * stage + 4 * stage / uint64_t(plan_.interleave) + 2 * 2 * block;
  }
  if (!software_.fsdp2) return (3 * 2 + 4) * block;
  const uint64_t root = parameter_count(model_) / tensor() - model_.layers * block;
  return 2 * (root + 2 * block) + 2 * std::max(root, 2 * block);
}

}  // namespace

PlanMemory predict_memory(const TrainCase& question) {
  const PlanMemory last = Stage(question, true).memory();
  if (question.plan.pipeline == 1) return last;
  const PlanMemory first = Stage(question, false).memory();
  return first.total() > last.total() ? first : last;
}

std::string_view binding_part(const PlanMemory& memory) {
  return std::ranges::max_element(kMemoryParts, {},
                                  [&](const MemoryPart& part) { return memory.*part.bytes; })
      ->name;
}

}  // namespace gxp
