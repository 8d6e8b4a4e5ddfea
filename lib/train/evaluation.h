// Forward passes between steps: validation and generated text.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/data/dataset.h"
#include "lib/train/step/backend.h"
#include "lib/zero/parameters.h"

namespace gxp {

// Borrows.
struct Evaluation {
  // [collective] Mean loss per token over `data`, train.valid_batches micro-batches per rank.
  double validate(const Dataset& data) const;
  // [collective] if the memory is sharded. `tokens` continued by `count` tokens, drawn by
  // softmax(logits / temperature), seeded.
  std::vector<int32_t> generate(std::vector<int32_t> tokens, int count, double temperature) const;

  const RunConfig& config;
  Backend& backend;
  ShardedMemory& sharded;
  Parameters& parameters;
};

}  // namespace gxp
