#include "lib/plan/activations.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

uint64_t values(const ActivationShape& shape) {
  return shape.sequence * shape.micro_batch * shape.hidden;
}

// Bytes of one layer per token, times t: h (10 + 24 / t + 5 a s / (h t)) t, a whole number.
uint64_t token_bytes(const ActivationShape& shape, Recompute recompute) {
  const uint64_t h = shape.hidden;
  const uint64_t t = shape.tensor_parallel;
  const uint64_t whole = shape.sequence_parallel ? 1 : t;  // what only sequence parallelism divides
  if (recompute == Recompute::kFull) return 2 * h * whole;
  const uint64_t scores =
      recompute == Recompute::kNone ? 5 * shape.heads * shape.sequence : uint64_t{0};
  return (10 * whole + 24) * h + scores;
}

uint64_t layer_bytes(const ActivationShape& shape, Recompute recompute) {
  const uint64_t tokens = shape.sequence * shape.micro_batch;
  return tokens * token_bytes(shape, recompute) / shape.tensor_parallel;
}

}  // namespace

uint64_t kept_activations(const ActivationShape& shape, Recompute recompute) {
  return shape.layers * layer_bytes(shape, recompute);
}

uint64_t live_layer(const ActivationShape& shape, Recompute recompute) {
  return recompute == Recompute::kFull ? layer_bytes(shape, Recompute::kNone) : 0;
}

uint64_t logits(const ActivationShape& shape, uint64_t bytes_each) {
  return shape.sequence * shape.micro_batch * shape.vocabulary * bytes_each;
}

std::vector<Term> explain_activations(const ActivationShape& shape, Recompute recompute) {
  constexpr std::array kFormulas = {"s B h L (34 + 5 a s / h)", "s B h L 34", "s B h L 2"};
  constexpr const char* kSource = "Korthikanti et al., arXiv:2205.05198, table 2";
  const std::string tokens = fmt::format("{} x {} x", shape.sequence, shape.micro_batch);
  const double each = double(layer_bytes(shape, recompute)) / double(values(shape));
  const double live = double(live_layer(shape, recompute)) / double(values(shape));
  std::vector<Term> terms = {
      {"activations", kFormulas[size_t(recompute)],
       fmt::format("{} {} x {} x {:.6g}", tokens, shape.hidden, shape.layers, each),
       kept_activations(shape, recompute), kSource}};
  if (recompute == Recompute::kFull)
    terms.push_back({"live layer", "s B h (34 + 5 a s / h)",
                     fmt::format("{} {} x {:.6g}", tokens, shape.hidden, live),
                     live_layer(shape, recompute), kSource});
  terms.push_back({"logits", "4 s B V", fmt::format("4 x {} {}", tokens, shape.vocabulary),
                   logits(shape, 4), "float32 logits of the whole micro-batch"});
  return terms;
}

}  // namespace gxp
