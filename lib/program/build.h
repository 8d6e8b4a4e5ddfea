// Builds the step program: from the model's units, the strategy and the sizes of a step. Pure.
#pragma once

#include <vector>

#include "lib/arch/architecture.h"
#include "lib/program/step_program.h"
#include "lib/program/strategy.h"
#include "lib/shard/layout.h"

namespace gxp {

struct StepShape {
  size_t rows = 1;       // of a micro-batch on one rank
  size_t positions = 1;  // per row
  int grad_accum = 1;    // micro-batches per step
  int world_size = 1;
  uint64_t bucket_bytes = 25u << 20;
};

// The program and what its operations' `unit` and `bucket` index.
struct BuiltStep {
  StepProgram program;
  std::vector<Bucket> buckets;
};

// One optimizer step: micro-batches of forward, loss and backward; gradients leave in buckets as
// soon as the last micro-batch has finished them; then clip and update.
BuiltStep build_train_step(const Architecture& architecture, const ParameterLayout& layout,
                           const Strategy& strategy, const StepShape& shape);

// Forward only, of one micro-batch, ending in the losses (kEvaluateLoss) or in the logits of each
// row's last position (kLogits).
StepProgram build_forward(const Architecture& architecture, const ParameterLayout& layout,
                          const StepShape& shape, OpKind ending);

}  // namespace gxp
