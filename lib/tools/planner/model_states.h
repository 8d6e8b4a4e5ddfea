// Model states: what a GPU holds of parameters, gradients and optimizer state between two steps,
// from the number of parameters alone. All else that a GPU holds: predict_memory.h.
//
// With P parameters, of which each of S GPUs owns a shard of ceil(P / S) elements:
//   stage 0 (DDP)                            everything whole
//   stage 1 (ZeRO-1)                         master weights and moments sharded
//   stage 2 (ZeRO-2, SHARD_GRAD_OP)          gradients too
//   stage 3 (ZeRO-3, FULL_SHARD)             parameters too
// S is the number of GPUs, or less for a hybrid: GPUs / S replicas of S shards each.
//
// All shards have the size of the largest: the last one is padded, as in a flat layout.
// Source: Rajbhandari et al., ZeRO, SC20, arXiv:1910.02054, section 5 and figure 1.
// Pure. Bytes are exact while P <= kMostParameters.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/replay/term.h"

namespace gxp {

inline constexpr uint64_t kMostParameters = 1'000'000'000'000'000;  // 1e15; 20 P fits 64 bits
inline constexpr int kMostGpus = 1 << 20;
inline constexpr int kMostStage = 3;

// Bytes of one element of each kind.
struct Precision {
  std::string_view name;
  uint64_t parameter = 0;
  uint64_t gradient = 0;
  uint64_t master = 0;  // 0: the parameters are their own master weights
  uint64_t moment = 0;
};

// The optimizer's state in addition to the master weights.
struct OptimizerState {
  std::string_view name;
  uint64_t moments = 0;            // elements per parameter
  uint64_t moment_bytes = 0;       // of an element; 0: as the precision has it
  uint64_t block_bytes = 0;        // in addition, for each block of kStateBlock parameters
  uint64_t moments_of_others = 0;  // in addition, elements per parameter of Training::others
};

inline constexpr Precision kBf16{"bf16", 2, 2, 4, 4};
inline constexpr OptimizerState kAdamW{"adamw", 2};

std::span<const Precision> precisions();
std::span<const OptimizerState> optimizer_states();

// kUsage with a near match if there is none of that name.
const Precision& find_precision(std::string_view name);
const OptimizerState& find_optimizer_state(std::string_view name);

struct Training {
  uint64_t parameters = 0;
  Precision precision;
  OptimizerState optimizer;
  uint64_t others = 0;  // of the parameters: those that no matrix of a block holds
};

// How the states are sharded.
struct Placement {
  int stage = 0;
  int gpus = 1;
  int shard = 0;  // GPUs that share one copy; 0: all of them

  [[nodiscard]] int shard_count() const { return shard == 0 ? gpus : shard; }
};

struct ModelStates {
  uint64_t parameters = 0;
  uint64_t gradients = 0;
  uint64_t master_weights = 0;
  uint64_t moments = 0;

  [[nodiscard]] uint64_t optimizer() const { return master_weights + moments; }
  [[nodiscard]] uint64_t total() const { return parameters + gradients + optimizer(); }
};

// Bytes of one GPU.
ModelStates model_states(const Training& training, const Placement& placement);

// The same, line by line, with formula and source.
std::vector<Term> explain_model_states(const Training& training, const Placement& placement);

}  // namespace gxp
