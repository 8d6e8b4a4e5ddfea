// The memory of a GPU at the peak of a step, by formula: model states, activations, logits, the
// buffers of sharding, and the driver's context. For models that gxp does not run, on software that
// is not gxp's; a run of gxp itself is replayed, to the byte (lib/replay/memory.h).
//
//   states       model_states.h, of the parameters that tensor and pipeline parallelism leave a GPU
//   activations  train_plan.h, times the micro-batches in flight, and a block that is recomputed
//   logits       s B V, times the bytes each that the software's loss takes
//   buffers      what sharded parameters are gathered into and gradients are reduced in
//   context      CUDA with all kernels loaded, and NCCL
// Errors against published runs: docs/RESULTS.md. Pure; about a microsecond without explanation.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "lib/tools/planner/train_plan.h"

namespace gxp {

// Bytes on a GPU of the pipeline stage that holds the most. With plan.sequence 0: states alone.
struct PlanMemory {
  ModelStates states;
  uint64_t activations = 0;
  uint64_t logits = 0;
  uint64_t buffers = 0;
  uint64_t context = 0;

  [[nodiscard]] uint64_t total() const {
    return states.total() + activations + logits + buffers + context;
  }
};

// The plan is possible (train_plan.h).
PlanMemory predict_memory(const TrainCase& question);

// The same, line by line, with formula and source.
std::vector<Term> explain_memory(const TrainCase& question);

struct MemoryPart {
  std::string_view name;
  uint64_t bytes = 0;
};

// Parameters, gradients, optimizer, activations, logits, buffers, context.
std::array<MemoryPart, 7> parts_of(const PlanMemory& memory);
// The largest part's name.
std::string_view binding_part(const PlanMemory& memory);

}  // namespace gxp
