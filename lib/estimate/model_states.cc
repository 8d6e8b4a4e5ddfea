#include "lib/estimate/model_states.h"

#include <fmt/format.h>

#include <string>

#include "lib/base/find_row.h"

namespace gxp {
namespace {

constexpr std::array kPrecisions = {
    Precision{"fp32", 4, 4, 0, 4, "everything in float32"},
    Precision{"fp16", 2, 2, 4, 4, "float16 with float32 master weights and moments"},
    kBf16,
    Precision{"bf16-fp32-grads", 2, 4, 4, 4, "bf16, gradients accumulated in float32"},
    Precision{"pure-bf16", 2, 2, 0, 2, "everything in bfloat16"},
};

constexpr std::array kOptimizers = {
    kAdamW,
    OptimizerState{"adam", 2, "two moments"},
    OptimizerState{"sgd", 0, "none"},
    OptimizerState{"momentum", 1, "one: SGD with momentum"},
    OptimizerState{"lion", 1, "one moment"},
    // One element per row and column of each matrix: (1/h + 1/4h) P for h x 4h matrices, which the
    // number of parameters does not tell.
    OptimizerState{"adafactor", 0, "factored second moment, neglected: below 0.2% of P"},
    OptimizerState{"muon", 1, "one: momentum (matrices only)"},
};

// One kind of state: its bytes per parameter, and the first stage that shards it.
struct StateKind {
  std::string_view name;
  uint64_t bytes_per_parameter;
  int first_sharded_stage;
  std::string_view source;
};

constexpr std::string_view kZero = "ZeRO, arXiv:1910.02054, section 5";

std::array<StateKind, 4> kinds(const Training& training) {
  const Precision& precision = training.precision;
  return {{{"parameters", precision.parameter, 3, kZero},
           {"gradients", precision.gradient, 2, kZero},
           {"master weights", precision.master, 1, "Micikevicius et al., arXiv:1710.03740"},
           {"moments", precision.moment * training.optimizer.moments, 1, kZero}}};
}

uint64_t elements(const StateKind& kind, uint64_t parameters, const Placement& placement) {
  if (placement.stage < kind.first_sharded_stage) return parameters;
  const auto shards = uint64_t(placement.shard_count());
  return (parameters + shards - 1) / shards;
}

Term explain(const StateKind& kind, uint64_t parameters, const Placement& placement) {
  const uint64_t bytes = kind.bytes_per_parameter;
  const bool whole = placement.stage < kind.first_sharded_stage || bytes == 0;
  const int shards = placement.shard_count();
  return {.component = std::string(kind.name),
          .formula = fmt::format("{} {}", bytes, whole ? "P" : "ceil(P / S)"),
          .numbers = whole ? fmt::format("{} x {}", bytes, parameters)
                           : fmt::format("{} x ceil({} / {})", bytes, parameters, shards),
          .bytes = bytes * elements(kind, parameters, placement),
          .source = std::string(kind.source)};
}

}  // namespace

std::span<const Precision> precisions() { return kPrecisions; }
std::span<const OptimizerState> optimizer_states() { return kOptimizers; }

const Precision& find_precision(std::string_view name) {
  return find_row(kPrecisions, name, "--precision");
}

const OptimizerState& find_optimizer_state(std::string_view name) {
  return find_row(kOptimizers, name, "--optimizer");
}

ModelStates model_states(const Training& training, const Placement& placement) {
  std::array<uint64_t, 4> bytes{};
  const auto all = kinds(training);
  for (size_t i = 0; i < all.size(); ++i) {
    bytes[i] = all[i].bytes_per_parameter * elements(all[i], training.parameters, placement);
  }
  return {bytes[0], bytes[1], bytes[2], bytes[3]};
}

std::vector<Term> explain_model_states(const Training& training, const Placement& placement) {
  std::vector<Term> terms;
  for (const StateKind& kind : kinds(training)) {
    terms.push_back(explain(kind, training.parameters, placement));
  }
  return terms;
}

}  // namespace gxp
