// What a GPU holds at the peak of a step, from formulas: model states, activations, logits, what
// sharding gathers, and the context. For models that gxp does not run, on software that is not its
// own; of a run of gxp itself replay.h tells, to the byte. Pure.
#pragma once

#include <array>
#include <string_view>

#include "lib/estimate/train_plan.h"

namespace gxp {

// Bytes of a GPU of the first pipeline stage.
struct PlanMemory {
  uint64_t parameters = 0;
  uint64_t gradients = 0;
  uint64_t optimizer = 0;
  uint64_t activations = 0;
  uint64_t logits = 0;
  uint64_t gathered = 0;  // of stage 3
  uint64_t context = 0;

  [[nodiscard]] uint64_t total() const {
    return parameters + gradients + optimizer + activations + logits + gathered + context;
  }
};

struct MemoryPart {
  std::string_view name;
  uint64_t PlanMemory::*bytes;
};

inline constexpr std::array<MemoryPart, 7> kMemoryParts = {{
    {"parameters", &PlanMemory::parameters},
    {"gradients", &PlanMemory::gradients},
    {"optimizer", &PlanMemory::optimizer},
    {"activations", &PlanMemory::activations},
    {"logits", &PlanMemory::logits},
    {"gathered", &PlanMemory::gathered},
    {"context", &PlanMemory::context},
}};

PlanMemory predict_memory(const TrainCase& question);

// The part that has most.
std::string_view binding_part(const PlanMemory& memory);

}  // namespace gxp
