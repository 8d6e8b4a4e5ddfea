#include "lib/tools/planner/predict_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

// With PyTorch 2.1 on A100 (stas00/ml-engineering): 0.92 GiB with all kernels loaded, and
// 2.00 - 0.55 GiB at the first barrier.
constexpr uint64_t kCudaBytes = 987'842'478;
constexpr uint64_t kNcclBytes = 1'556'925'644;

// DeepSpeed's defaults, in elements.
constexpr uint64_t kReduceBucket = 500'000'000;   // reduce_bucket_size
constexpr uint64_t kMaxLive = 1'000'000'000;      // stage3_max_live_parameters
constexpr uint64_t kPrefetchBucket = 50'000'000;  // stage3_prefetch_bucket_size

// Bytes with the formula that gives them.
struct Bytes {
  uint64_t count = 0;
  const char* formula = "";
  const char* source = "";
};

// One stage of a pipeline: the first has most micro-batches in flight, the last has the logits.
class Stage {
 public:
  Stage(const TrainCase& question, bool last)
      : plan_(question.plan),
        model_(*question.model),
        software_(*question.software),
        is_last_(last || question.plan.pipeline == 1) {}

  [[nodiscard]] uint64_t tokens() const {
    return plan_.sequence / uint64_t(plan_.context) * plan_.micro_batch;
  }
  [[nodiscard]] double in_flight() const;
  [[nodiscard]] Bytes kept() const;
  [[nodiscard]] uint64_t kept_in_flight() const {
    return uint64_t(double(kept().count) * in_flight() / plan_.pipeline);
  }
  [[nodiscard]] uint64_t recomputed() const;
  [[nodiscard]] uint64_t bytes_per_logit() const;
  [[nodiscard]] uint64_t logits() const;
  [[nodiscard]] Bytes buffers() const;

 private:
  [[nodiscard]] bool stores_scores() const { return software_.attention == Attention::kStored; }
  [[nodiscard]] bool is_fsdp2() const { return software_.buffers == ShardBuffers::kFsdp2; }
  [[nodiscard]] uint64_t tensor() const { return uint64_t(plan_.tensor); }
  // Bytes that a layer keeps for one micro-batch.
  [[nodiscard]] uint64_t of_layer(Recompute recompute) const;
  [[nodiscard]] uint64_t of_layers(Recompute recompute) const {
    return model_.layers * of_layer(recompute);
  }
  [[nodiscard]] uint64_t kept_by_operation() const;
  [[nodiscard]] Bytes deepspeed_buffers() const;

  const TrainPlan& plan_;
  const PublishedModel& model_;
  const Software& software_;
  bool is_last_;
};

uint64_t Stage::of_layer(Recompute recompute) const {
  return layer_activations(model_,
                           {.sequence = plan_.sequence / uint64_t(plan_.context),
                            .micro_batch = plan_.micro_batch,
                            .tensor_parallel = tensor(),
                            .sequence_parallel = plan_.sequence_parallel,
                            // Software older than fused attention trained with dropout.
                            .dropout = stores_scores()},
                           recompute);
}

// Micro-batches whose activations the stage keeps at a time, over all its pieces; at most the
// step's. Narayanan et al., arXiv:2104.04473: a stage has passed on as many pieces as this before
// its first comes back.
double Stage::in_flight() const {
  const double stages = plan_.pipeline;
  const double pieces = plan_.interleave;
  const double ahead = is_last_ ? 1 : stages;
  const double passed = pieces == 1 ? ahead : (pieces - 1) * stages + 2 * ahead - 1;
  if (plan_.accumulation == 0) return passed / pieces;
  return std::min(passed / pieces, double(plan_.accumulation));
}

// torchtitan's policy by operation keeps the output of attention and of every second product, in
// the order in which they run; not compiled, also the MLP's, which no backward pass reads. In a
// Llama block these are the products of q, v, and the first of the MLP; in a GPT block that of q, k
// and v together, and the first of the MLP.
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

// By all layers for one micro-batch. Fused attention keeps no scores: "none" is then the paper's
// "selective".
Bytes Stage::kept() const {
  constexpr const char* kKorthikanti = "Korthikanti et al., arXiv:2205.05198, table 2";
  const bool gated = model_.kind == BlockKind::kLlama;
  if (plan_.recompute == Recompute::kFull)
    return {of_layers(Recompute::kFull), "s B h L 2", kKorthikanti};
  if (plan_.recompute == Recompute::kSelective && !stores_scores())
    return {kept_by_operation(), "the outputs of attention and every second product",
            "torchtitan's policy by operation"};
  if (plan_.recompute == Recompute::kNone && stores_scores())
    return {of_layers(Recompute::kNone),
            gated ? "s B L (8 h + 4 q + 4 k + 6 f + 2 a s)" : "s B h L (34 + 5 a s / h)",
            kKorthikanti};
  return {of_layers(Recompute::kSelective),
          gated             ? "s B L (8 h + 4 q + 4 k + 6 f)"
          : stores_scores() ? "s B h L 34"
                            : "s B h L 32, no dropout",
          kKorthikanti};
}

// A block's activations while it is recomputed.
uint64_t Stage::recomputed() const {
  const bool again = plan_.recompute == Recompute::kFull ||
                     (plan_.recompute == Recompute::kSelective && !stores_scores());
  if (!again) return 0;
  uint64_t bytes = of_layer(stores_scores() ? Recompute::kNone : Recompute::kSelective);
  // The inputs of attention and MLP, gathered over the GPUs that share the block; asynchronous
  // tensor parallelism gathers them piece by piece.
  if (plan_.tensor > 1 && is_fsdp2() && !software_.overlaps_tensor)
    bytes += 2 * 2 * tokens() * model_.hidden;
  return bytes;
}

// DTensor's loss over a vocabulary cut over GPUs has one more float32 copy. PyTorch's pipeline
// keeps the logits of all micro-batches, and concatenates copies of them.
uint64_t Stage::bytes_per_logit() const {
  auto each = uint64_t(software_.logit_bytes);
  if (is_fsdp2() && plan_.tensor > 1) each += 4;
  if (is_fsdp2() && plan_.pipeline > 1)
    each += (2 + 2) * (plan_.accumulation > 0 ? plan_.accumulation : uint64_t(plan_.pipeline));
  return each;
}

// And the head's input, gathered.
uint64_t Stage::logits() const {
  if (!is_last_) return 0;
  const uint64_t input = is_fsdp2() && plan_.tensor > 1 ? 2 * tokens() * model_.hidden : 0;
  return tokens() * model_.vocabulary * bytes_per_logit() / tensor() + input;
}

Bytes Stage::deepspeed_buffers() const {
  const uint64_t parameters = parameter_count(model_) / (tensor() * uint64_t(plan_.pipeline));
  if (plan_.stage == 3)
    return {2 * (kReduceBucket + std::min(kMaxLive, parameters) +
                 std::min(kPrefetchBucket, parameters)),
            "2 (5e8 + min(1e9, P) + min(5e7, P))",
            "DeepSpeed stage3.py: reduce bucket, live and prefetched parameters"};
  return {2 * 3 * kReduceBucket + 4 * parameters / uint64_t(plan_.shards()),
          "2 x 3 x 5e8 + 4 P / S",
          "DeepSpeed stage_1_and_2.py: two reduce buckets, a flattened one, float32 gradients"};
}

// The unit U that runs has two 16-bit copies of its parameters and the next unit one; the gradients
// to reduce are float32.
// FSDP2 holds 16-bit copies of the root module R (all that is outside the blocks) and of two
// blocks, plus all-gather buffers. These buffers belong to a stream of their own, so the allocator
// cannot reuse them; the reduce-scatter's input takes memory that activations have left.
// A pipeline keeps all that it has gathered, and float32 gradients of one piece until its last
// micro-batch.
Bytes Stage::buffers() const {
  if (plan_.stage == 0 || plan_.shards() == 1) return {};
  if (software_.buffers == ShardBuffers::kDeepSpeed) return deepspeed_buffers();
  if (plan_.stage < 3) return {};
  const uint64_t block = block_parameter_count(model_) / tensor();
  if (plan_.pipeline > 1) {
    const uint64_t stage = parameter_count(model_) / (tensor() * uint64_t(plan_.pipeline));
    return {2 * stage + 4 * stage / uint64_t(plan_.interleave) + 2 * 2 * block,
            "2 P + 4 P / v + 4 U", "parameters stay gathered over the micro-batches"};
  }
  if (!is_fsdp2()) return {(3 * 2 + 4) * block, "(3 x 2 + 4) U", "a unit, the next, gradients"};
  const uint64_t root = parameter_count(model_) / tensor() - model_.layers * block;
  return {2 * (root + 2 * block) + 2 * std::max(root, 2 * block), "2 (R + 2 U) + 2 max(R, 2 U)",
          "PyTorch _fsdp_collectives.py, _fsdp_param_group.py"};
}

// The training whose states lie on one GPU's data-parallel ranks.
Training part_of_copy(const TrainCase& question) {
  const auto parts = uint64_t(question.plan.tensor) * uint64_t(question.plan.pipeline);
  const uint64_t others = question.model == nullptr ? 0 : other_parameter_count(*question.model);
  return {(parameters_of(question) + parts - 1) / parts, *question.precision, *question.optimizer,
          (others + parts - 1) / parts};
}

Placement placement_of(const TrainPlan& plan) {
  return {.stage = plan.stage, .gpus = plan.data_ranks(), .shard = plan.shard};
}

// All but the states, which are the same for every stage.
PlanMemory memory_of(const TrainCase& question, const Stage& stage) {
  const bool one = question.plan.gpus == 1;
  return {.states = {},
          .activations = stage.kept_in_flight() + stage.recomputed(),
          .logits = stage.logits(),
          .buffers = stage.buffers().count,
          .context = kCudaBytes + (one ? 0 : kNcclBytes)};
}

bool first_holds_most(const TrainCase& question) {
  return question.plan.pipeline > 1 && memory_of(question, Stage(question, false)).total() >
                                           memory_of(question, Stage(question, true)).total();
}

}  // namespace

PlanMemory predict_memory(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  PlanMemory memory;
  if (plan.sequence > 0) memory = memory_of(question, Stage(question, !first_holds_most(question)));
  memory.states = model_states(part_of_copy(question), placement_of(plan));
  if (plan.offload == StateOffload::kAll) memory.states.parameters = 0;
  if (plan.offload != StateOffload::kNone) memory.states.master_weights = memory.states.moments = 0;
  return memory;
}

std::vector<Term> explain_memory(const TrainCase& question) {
  const TrainPlan& plan = question.plan;
  std::vector<Term> terms = explain_model_states(part_of_copy(question), placement_of(plan));
  const size_t offloaded_from = plan.offload == StateOffload::kNone ? terms.size() : 2;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i >= offloaded_from || (i == 0 && plan.offload == StateOffload::kAll))
      terms[i] = {terms[i].component, "0", "offloaded to main memory", 0, terms[i].source};
  }
  if (plan.sequence == 0) return terms;
  const Stage stage(question, !first_holds_most(question));
  const auto add = [&](const char* component, const char* formula, std::string numbers,
                       uint64_t bytes, const char* source) {
    if (bytes > 0) terms.push_back({component, formula, std::move(numbers), bytes, source});
  };
  const Bytes kept = stage.kept();
  add("activations", kept.formula,
      fmt::format("{:.6g} x {} micro-batches / {} stages", double(kept.count), stage.in_flight(),
                  plan.pipeline),
      stage.kept_in_flight(), kept.source);
  add("recomputed block", "one block, its inputs gathered", fmt::format("{}", stage.recomputed()),
      stage.recomputed(), "live while it is recomputed");
  add("logits", "c s B V / t",
      fmt::format("{} x {} x {} / {}", stage.bytes_per_logit(), stage.tokens(),
                  question.model->vocabulary, plan.tensor),
      stage.logits(), "the loss of the whole micro-batch");
  const Bytes buffers = stage.buffers();
  add("buffers", buffers.formula, fmt::format("{}", buffers.count), buffers.count, buffers.source);
  constexpr const char* kContext = "stas00/ml-engineering, PyTorch 2.1 on A100";
  add("CUDA context", "0.92 GiB",
      "0.92 GiB with all kernels loaded (0.47 where they are loaded when used)", kCudaBytes,
      kContext);
  add("NCCL", "1.45 GiB", "2.00 - 0.55 GiB at the first barrier", plan.gpus == 1 ? 0 : kNcclBytes,
      kContext);
  return terms;
}

std::array<MemoryPart, 7> parts_of(const PlanMemory& memory) {
  return {{{"parameters", memory.states.parameters},
           {"gradients", memory.states.gradients},
           {"optimizer", memory.states.optimizer()},
           {"activations", memory.activations},
           {"logits", memory.logits},
           {"buffers", memory.buffers},
           {"context", memory.context}}};
}

std::string_view binding_part(const PlanMemory& memory) {
  const auto parts = parts_of(memory);
  return std::ranges::max_element(parts, {}, &MemoryPart::bytes)->name;
}

}  // namespace gxp
