// Builds the step program: from the model's units, the strategy and the sizes of a step. Pure.
#pragma once

#include <bit>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/optimizers.h"
#include "lib/config/strategy.h"
#include "lib/program/gather_schedule.h"
#include "lib/program/step_program.h"
#include "lib/shard/layout.h"

namespace gxp {

// The offloaded state: parameters only together with the optimizer's state, and then all of both.
struct OffloadShape {
  Storage optimizer = Storage::kDevice;  // of its state and of master weights
  Storage parameters = Storage::kDevice;
  double ratio = 1;               // of the optimizer's, which part; above 0
  size_t tile = size_t{1} << 20;  // elements that are fetched, updated and stored together
};

struct StepShape {
  size_t rows = 1;       // of a micro-batch on one rank
  size_t positions = 1;  // per row
  int grad_accum = 1;    // micro-batches per step
  int world_size = 1;
  int shard_size = 0;  // ranks of a shard group, a divisor of world_size; 0: all
  // Replicas share the optimizer's work and memory too.
  bool optimizer_over_replicas = false;
  int hosts = 1;                  // of the ranks, equally many on each; divides world_size
  std::string codec = {};         // of sums of gradients between them; "": none
  std::string gather_codec = {};  // of a step's gathers of parameters between them; "": none
  uint64_t bucket_bytes = 25u << 20;
  // Micro-batches' gradients are added on each rank and reduced once a step, so all of them are
  // held; else, where gradients are sharded, each micro-batch's are reduced and only shards held.
  bool hold_gradients = true;
  // The types in which gradients are kept over micro-batches and for the optimizer, and in which
  // they are sent between ranks; any of f32, bf16 and f16; the same type with add_in_pairs.
  DType gradients = DType::kF32;
  DType reduced = DType::kF32;
  GatherLimits gathers{};
  // Parts of each FSDP unit whose sums of squares make up the norm, a multiple of world_size, which
  // the layout is made for; 0: world_size.
  int norm_parts = 0;
  // Gradients of micro-batches are added as a binary tree, neighbours first, instead of one after
  // the other: with the tree over the ranks one tree over all micro-batches of a step, whoever
  // computes which. grad_accum is then a power of two.
  bool add_in_pairs = false;
  // What to recompute, in the units that one of the patterns matches (recompute.h).
  Recompute recompute = Recompute::kNone;
  std::vector<std::string> recompute_units = {"*"};
  // The 8-bit codes of blocks' matrices, which the first forward pass of a step makes, are kept for
  // all other passes.
  bool keep_codes = false;
  // Rows hold documents that are kept apart: a batch has the position where each token's begins.
  bool documents = false;
  OptimizerSpec optimizer = make_optimizer_spec({});
  OffloadShape offload{};
};

// The number of sums that are complete after micro-batch `micro`, each of which is then added into
// the one before it, the newest first; popcount(micro + 1) sums remain.
inline int sums_completed(int micro) { return std::countr_zero(unsigned(micro) + 1); }

inline RankGroups groups_of(const StepShape& shape) {
  return {shape.world_size, shape.shard_size > 0 ? shape.shard_size : shape.world_size,
          shape.hosts};
}

// The program, and the buckets that its operations' `bucket` indexes.
struct BuiltStep {
  StepProgram program;
  std::vector<Bucket> buckets;
};

// One optimizer step: micro-batches of forward, loss and backward; gradients leave in buckets
// (where they are sharded: by wrap) as soon as the last micro-batch has finished them; then clip
// and update. Where the optimizer is sharded but parameters are not, a step begins with gathering
// what the step before has updated, while its first units run forward. With replicas, a sum goes to
// the shards of a group first and then over the replicas, which is smaller by the group's size;
// with the same bits as over all ranks where a group is 2^k ranks
// (lib/collective/algorithm/reduction_tree.h).
//
// Activations that a unit has not kept are recomputed right before its backward. The last block's
// backward directly follows the loss, so that block keeps all its activations unless this makes the
// arena larger, as it does if the peak is in the loss. Throws kConfig as recompute_by_unit does.
BuiltStep build_train_step(const Architecture& architecture, const ParameterLayout& layout,
                           const Strategy& strategy, const StepShape& shape);

// Forward only, of one micro-batch, with whole parameters up to date where they are not sharded,
// ending in the losses (kEvaluateLoss) or in the logits of each row's last position (kLogits). Ranks
// that run nothing else write all the parameters that they hold, so these are their optimizer_shards.
StepProgram build_forward(const Architecture& architecture, const ParameterLayout& layout,
                          const Strategy& strategy, const StepShape& shape, OpKind ending);

}  // namespace gxp
