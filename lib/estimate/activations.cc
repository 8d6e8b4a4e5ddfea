#include "lib/estimate/activations.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

uint64_t values(const ActivationShape& shape) {
  return shape.sequence * shape.micro_batch * shape.hidden;
}

// Bytes of one layer per token, times t, a whole number: what sequence parallelism alone divides
// and the rest.
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
                           .vocabulary = model.vocabulary,
                           .sequence = sequence,
                           .micro_batch = micro_batch};
  if (model.kind == BlockKind::kGpt) return shape;
  shape.gated_mlp = model.mlp;
  shape.queries = model.heads * model.head_size;
  shape.keys = model.key_value_heads * model.head_size;
  return shape;
}

uint64_t kept_activations(const ActivationShape& shape, Recompute recompute) {
  const uint64_t kept = shape.layers * layer_bytes(shape, recompute);
  if (shape.interleave <= 1) return kept;
  const uint64_t stages = shape.pipeline_parallel;
  return kept + kept * (stages - 1) / (stages * shape.interleave);
}

uint64_t live_layer(const ActivationShape& shape, Recompute recompute) {
  return recompute == Recompute::kFull ? layer_bytes(shape, Recompute::kNone) : 0;
}

uint64_t logits(const ActivationShape& shape, uint64_t bytes_each) {
  return shape.sequence * shape.micro_batch * shape.vocabulary * bytes_each;
}

std::vector<Term> explain_activations(const ActivationShape& shape, Recompute recompute) {
  constexpr std::array kGpt = {"s B h L (34 + 5 a s / h)", "s B h L 34", "s B h L 2"};
  constexpr std::array kGated = {"s B L (8 h + 4 q + 4 k + 6 f + 2 a s)",
                                 "s B L (8 h + 4 q + 4 k + 6 f)", "s B h L 2"};
  const auto& formulas = shape.gated_mlp > 0 ? kGated : kGpt;
  constexpr const char* kSource = "Korthikanti et al., arXiv:2205.05198, table 2";
  const std::string tokens = fmt::format("{} x {} x", shape.sequence, shape.micro_batch);
  const double each =
      double(kept_activations(shape, recompute)) / double(values(shape) * shape.layers);
  const double live = double(live_layer(shape, recompute)) / double(values(shape));
  std::vector<Term> terms = {
      {"activations", formulas[size_t(recompute)],
       fmt::format("{} {} x {} x {:.6g}", tokens, shape.hidden, shape.layers, each),
       kept_activations(shape, recompute), kSource}};
  if (recompute == Recompute::kFull)
    terms.push_back({"live layer", "one layer of recompute none",
                     fmt::format("{} {} x {:.6g}", tokens, shape.hidden, live),
                     live_layer(shape, recompute), kSource});
  if (shape.pipeline_parallel > 1) return terms;  // the last stage has the logits, the first more
  terms.push_back({"logits", "4 s B V / t",
                   fmt::format("4 x {} {} / {}", tokens, shape.vocabulary, shape.tensor_parallel),
                   logits(shape, 4) / shape.tensor_parallel,
                   "float32 logits of the whole micro-batch"});
  return terms;
}

}  // namespace gxp
