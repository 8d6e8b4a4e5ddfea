// From the step program's buffer numbers to the tensors that the model's code works on.
#pragma once

#include <functional>

#include "lib/data/batch_loader.h"
#include "lib/model/model.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// The tensors of an operation on a unit, in micro-batches of `shape`. They stay valid as long as
// `memory`.
UnitTensors bind_unit(const RunPlan& plan, const StepShape& shape, const ProgramMemory& memory,
                      const Op& op);

// The function that carries out kNextBatch: `fill` writes the batch on the host, which is then copied
// to the device on the compute lane.
using FillBatch = std::function<void(const BatchTensors& batch)>;
std::function<void()> bind_next_batch(Lanes& lanes, const ProgramMemory& memory,
                                      const StepShape& shape, const Op& op, FillBatch fill);

}  // namespace gxp
