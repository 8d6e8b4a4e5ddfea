// One way to train a model on a number of GPUs: the input of predict_time.h and predict_memory.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/arch/published_models.h"
#include "lib/arch/recompute.h"
#include "lib/replay/hardware.h"
#include "lib/tools/planner/model_states.h"

namespace gxp {

// Activations of a model's blocks, by formula: what the forward pass of a micro-batch keeps for its
// backward pass, with 16-bit values, on one of the GPUs that share each layer.
//
// With s tokens, B sequences, h hidden, a heads, L layers, bytes of GPT blocks (one-byte dropout
// masks, an MLP of 4 hidden) are
//   none        s B h L (34 + 5 a s / h)   attention 11 + 5 a s / h, MLP 19, LayerNorms 4
//   selective   s B h L 34                 the scores of the attention are computed again
//   full        s B h L 2                  and one layer, live while it is computed again
// Tensor parallelism over t divides the products' 24 of the 34 and the scores; sequence parallelism
// with it all. A Llama block has no dropout; with q = a head_size, k of its key-value heads, an MLP
// of f, it keeps 8 h + 4 q + 4 k + 6 f, and 2 a s of scores.
// Source: Korthikanti et al., arXiv:2205.05198, table 2 and section 4.2. Pure.

// A micro-batch, and how its layers are shared.
struct ActivationBatch {
  uint64_t sequence = 0;
  uint64_t micro_batch = 1;
  uint64_t tensor_parallel = 1;
  bool sequence_parallel = false;
  bool dropout = true;  // two masks in a GPT block
};

// Bytes that one layer keeps. With full recomputation, a layer that is being recomputed
// additionally takes its activations without recomputation.
uint64_t layer_activations(const PublishedModel& model, const ActivationBatch& batch,
                           Recompute recompute);

enum class NumberFormat { kBf16, kFp8, kMxfp8 };
inline constexpr std::array<std::string_view, 3> kNumberFormatNames = {"bf16", "fp8", "mxfp8"};

// States that are in host memory between steps; the update then runs there.
enum class StateOffload { kNone, kOptimizer, kAll };
inline constexpr std::array<std::string_view, 3> kOffloadNames = {"none", "optimizer", "all"};

struct TrainPlan {
  uint64_t sequence = 2048;   // tokens; 0: memory of the model states alone is asked for
  uint64_t micro_batch = 1;   // sequences
  uint64_t accumulation = 1;  // micro-batches of a step, on each data-parallel rank; 0: not given
  int gpus = 8;
  int tensor = 1;      // GPUs that share each layer
  int pipeline = 1;    // stages
  int interleave = 1;  // pieces of the model on each stage
  int context = 1;     // GPUs that share each sequence
  bool sequence_parallel = true;
  int stage = 3;  // ZeRO
  int shard = 0;  // data-parallel ranks that share one copy; 0: all
  NumberFormat format = NumberFormat::kBf16;
  // Selective: with stored scores attention is computed again; with fused attention every second
  // product and all that is no product, as in torchtitan's policy by operation.
  Recompute recompute = Recompute::kNone;
  StateOffload offload = StateOffload::kNone;

  // The number of copies of the model, sharded or not.
  [[nodiscard]] int replicas() const { return gpus / (tensor * pipeline * context); }
  // Ranks that share or replicate the same states; context-parallel ranks count as well.
  [[nodiscard]] int data_ranks() const { return gpus / (tensor * pipeline); }
  [[nodiscard]] int shards() const { return shard == 0 ? data_ranks() : shard; }
  [[nodiscard]] uint64_t sequences_per_step() const {
    return micro_batch * accumulation * uint64_t(replicas());
  }
  [[nodiscard]] uint64_t tokens_per_step() const { return sequence * sequences_per_step(); }
};

struct TrainCase {
  const PublishedModel* model = nullptr;  // null: only the number of parameters is known
  const Hardware* hardware = nullptr;     // null: no time is asked for
  const Software* software = nullptr;     // null: plan.sequence is 0
  TrainPlan plan = {};
  const Precision* precision = &kBf16;
  const OptimizerState* optimizer = &kAdamW;
  uint64_t parameters = 0;  // without a model
};

uint64_t parameters_of(const TrainCase& question);

// "a sequence of 2048 exceeds the model's 1024 positions"; "": it does not.
std::string beyond_positions(const PublishedModel& model, uint64_t sequence);

// kUsage, with the reason, for a plan that does not divide: GPUs by the parallel sizes, layers by
// stages, heads by tensor parallelism, ranks by shards.
void check(const TrainCase& question);
// Whether check() would pass.
bool is_possible(const TrainCase& question);

}  // namespace gxp
