#include "lib/estimate/activations.h"

namespace gxp {
namespace {

// Bytes of one layer per token, times t, which keeps them whole numbers: first those that only
// sequence parallelism divides.
uint64_t token_bytes(const ActivationShape& shape, Recompute recompute) {
  const uint64_t h = shape.hidden;
  const uint64_t whole = shape.sequence_parallel ? 1 : shape.tensor_parallel;
  if (recompute == Recompute::kFull) return 2 * h * whole;
  const bool gated = shape.gated_mlp > 0;
  const uint64_t scores =
      recompute == Recompute::kNone ? (gated ? 2 : 5) * shape.heads * shape.sequence : uint64_t{0};
  if (gated) return 8 * whole * h + 4 * (shape.queries + shape.keys) + 6 * shape.gated_mlp + scores;
  return ((shape.dropout ? 10 : 8) * whole + 24) * h + scores;
}

uint64_t layer_bytes(const ActivationShape& shape, Recompute recompute) {
  const uint64_t tokens = shape.sequence * shape.micro_batch;
  return tokens * token_bytes(shape, recompute) / shape.tensor_parallel;
}

}  // namespace

ActivationShape activation_shape(const PublishedModel& model, uint64_t sequence,
                                 uint64_t micro_batch) {
  ActivationShape shape = {.layers = model.layers,
                           .hidden = model.hidden,
                           .heads = model.heads,
                           .sequence = sequence,
                           .micro_batch = micro_batch};
  if (model.kind == BlockKind::kGpt) return shape;
  shape.gated_mlp = model.mlp;
  shape.queries = model.heads * model.head_size;
  shape.keys = model.key_value_heads * model.head_size;
  return shape;
}

uint64_t kept_activations(const ActivationShape& shape, Recompute recompute) {
  return shape.layers * layer_bytes(shape, recompute);
}

uint64_t live_layer(const ActivationShape& shape, Recompute recompute) {
  return recompute == Recompute::kFull ? layer_bytes(shape, Recompute::kNone) : 0;
}

}  // namespace gxp
