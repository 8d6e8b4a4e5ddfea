#include "lib/tools/planner/model_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/arch/architecture.h"
#include "lib/arch/optimizers.h"
#include "lib/base/find_row.h"
#include "lib/base/state_block.h"
#include "lib/base/text/word_aliases.h"

namespace gxp {
namespace {

constexpr std::array kPrecisions = {
    Precision{"fp32", 4, 4, 0, 4},
    Precision{"fp16", 2, 2, 4, 4},
    kBf16,
    Precision{"bf16-fp32-grads", 2, 4, 4, 4},  // gradients accumulated in float32
    Precision{"pure-bf16", 2, 2, 0, 2},        // master weights and moments too
};

// What is kept for each element of every tensor.
uint64_t moments(const OptimizerSpec& spec) {
  return uint64_t(std::ranges::count_if(spec.kept, &KeptState::of_all));
}

// What is kept for each element of other tensors than the blocks' matrices.
uint64_t moments_of_others(const OptimizerSpec& spec) {
  UnitSpec block, embedding;
  block.kind = UnitKind::kBlock;
  embedding.kind = UnitKind::kEmbedding;
  TensorSpec matrix;
  matrix.shape = {2, 3};
  return uint64_t(std::ranges::count_if(spec.kept, [&](const KeptState& kept) {
    return kept.shape(block, matrix).empty() && kept.shape(embedding, matrix) == matrix.shape;
  }));
}

// AdamW with moments of fewer bits.
OptimizerState packed_moments(std::string_view name, const char* state_dtype) {
  OptimConfig config;
  config.state_dtype = state_dtype;
  OptimizerState state{name};
  for (const KeptState& kept : make_optimizer_spec(config).kept) {
    (kept.block == 1 ? state.moment_bytes : state.block_bytes) += size_of(kept.dtype);
    state.moments += kept.block == 1 ? 1 : 0;
  }
  state.moment_bytes /= state.moments;
  return state;
}

// The states of the optimizers in lib/arch/optimizers.h. An optimizer whose settings decide whether
// it has a momentum, or of which type its state is, has several rows: memcalc knows no settings.
std::vector<OptimizerState> make_optimizer_states() {
  std::vector<OptimizerState> states;
  for (const OptimizerRow& row : optimizers()) {
    OptimConfig config;
    states.push_back({.name = row.name,
                      .moments = moments(row.spec(config)),
                      .moments_of_others = moments_of_others(row.spec(config))});
    config.momentum = 0.9;
    if (const uint64_t more = moments(row.spec(config)); more != states.back().moments)
      states.push_back({"momentum", more});
  }
  states.push_back(packed_moments("adamw-bf16", "bf16"));
  states.push_back(packed_moments("adamw-int8", "int8"));
  return states;
}

// One kind of state: its bytes per parameter, or per block of parameters, and the first stage that
// shards it.
struct StateKind {
  std::string_view name;
  uint64_t bytes;
  int first_sharded_stage;
  std::string_view source;
  uint64_t block = 1;
  bool of_others = false;
};

constexpr std::string_view kZero = "ZeRO, arXiv:1910.02054, section 5";

std::array<StateKind, 6> kinds(const Training& training) {
  const Precision& precision = training.precision;
  const OptimizerState& optimizer = training.optimizer;
  const uint64_t moment = optimizer.moment_bytes > 0 ? optimizer.moment_bytes : precision.moment;
  return {{{"parameters", precision.parameter, 3, kZero},
           {"gradients", precision.gradient, 2, kZero},
           {"master weights", precision.master, 1, "Micikevicius et al., arXiv:1710.03740"},
           {"moments", moment * optimizer.moments, 1, kZero},
           {"scales of moments", optimizer.block_bytes, 1, "Dettmers et al., arXiv:2110.02861",
            kStateBlock},
           {"second moments of other tensors", moment * optimizer.moments_of_others, 1,
            "Jordan et al., github.com/KellerJordan/Muon", 1, true}}};
}

uint64_t parameters_of(const StateKind& kind, const Training& training) {
  return kind.of_others ? training.others : training.parameters;
}

uint64_t elements(const StateKind& kind, uint64_t parameters, const Placement& placement) {
  const bool whole = placement.stage < kind.first_sharded_stage;
  const auto shards = whole ? 1 : uint64_t(placement.shard_count());
  return ((parameters + shards - 1) / shards + kind.block - 1) / kind.block;
}

Term explain(const StateKind& kind, uint64_t parameters, const Placement& placement) {
  const uint64_t bytes = kind.bytes;
  const bool whole = placement.stage < kind.first_sharded_stage || bytes == 0;
  const int shards = placement.shard_count();
  const std::string of_block = kind.block == 1 ? "" : fmt::format(" / {}", kind.block);
  return {.component = std::string(kind.name),
          .formula = fmt::format("{} {}{}", bytes, whole ? "P" : "ceil(P / S)", of_block),
          .numbers = (whole ? fmt::format("{} x {}", bytes, parameters)
                            : fmt::format("{} x ceil({} / {})", bytes, parameters, shards)) +
                     of_block,
          .bytes = bytes * elements(kind, parameters, placement),
          .source = std::string(kind.source)};
}

}  // namespace

std::span<const Precision> precisions() { return kPrecisions; }
std::span<const OptimizerState> optimizer_states() {
  static const std::vector<OptimizerState> kStates = make_optimizer_states();
  return kStates;
}

const Precision& find_precision(std::string_view name) {
  const auto word = find_word(row_names(kPrecisions), name);  // also "bfloat16"
  return find_row(kPrecisions, word.value_or(name), "--precision");
}

const OptimizerState& find_optimizer_state(std::string_view name) {
  return find_row(optimizer_states(), name, "--optimizer");
}

ModelStates model_states(const Training& training, const Placement& placement) {
  const auto all = kinds(training);
  const auto bytes = [&](size_t i) {
    return all[i].bytes * elements(all[i], parameters_of(all[i], training), placement);
  };
  return {bytes(0), bytes(1), bytes(2), bytes(3) + bytes(4) + bytes(5)};
}

std::vector<Term> explain_model_states(const Training& training, const Placement& placement) {
  std::vector<Term> terms;
  for (const StateKind& kind : kinds(training)) {
    const bool is_special = kind.block > 1 || kind.of_others;
    if (!is_special || kind.bytes > 0)
      terms.push_back(explain(kind, parameters_of(kind, training), placement));
  }
  return terms;
}

}  // namespace gxp
