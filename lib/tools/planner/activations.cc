#include "lib/tools/planner/activations.h"

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

}  // namespace

uint64_t layer_activations(const PublishedModel& model, const ActivationBatch& batch,
                           Recompute recompute) {
  const uint64_t tokens = batch.sequence * batch.micro_batch;
  return tokens * token_bytes(model, batch, recompute) / batch.tensor_parallel;
}

}  // namespace gxp
