// Passes between steps that only run forward: validation and generated text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/data/dataset.h"
#include "lib/model/model.h"
#include "lib/train/backend.h"
#include "lib/zero/parameters.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

class Evaluation {
 public:
  // All arguments outlive it.
  Evaluation(const RunConfig& config, Backend& backend, ShardedMemory& held,
             Parameters& parameters);

  // [collective] Mean loss per token over `data`, train.valid_batches micro-batches per rank.
  double validate(const Dataset& data);
  // [collective] if the memory is sharded. `tokens` continued by `count` tokens, drawn by
  // softmax(logits / temperature), seeded.
  std::vector<int32_t> generate(std::vector<int32_t> tokens, int count, double temperature);

 private:
  // A program with its memory and runner.
  struct Pass;
  std::unique_ptr<Pass> make_pass(const StepShape& shape, StepProgram program);
  std::function<void()> bind(const Pass& pass, const Op& op);

  const RunConfig& config_;
  Backend& backend_;
  ShardedMemory& held_;
  Parameters& parameters_;
  const std::unique_ptr<Model> model_;
};

}  // namespace gxp
