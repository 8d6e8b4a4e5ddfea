// From the step program's buffer numbers to the tensors that the model's code works on.
#pragma once

#include "lib/device/mirror.h"
#include "lib/model/model.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// The tensors of an operation on a unit, in micro-batches of `shape`. They stay valid as long as
// `memory`.
UnitTensors bind_unit(const RunPlan& plan, const StepShape& shape, const ProgramMemory& memory,
                      const Op& op);

// The tokens and targets of a kNextBatch: filled on the host, then copied to the device.
class HostBatch {
 public:
  // Each operation has a batch of its own, so that none is written again before the step's end,
  // while the device may still copy it. The device and `memory` outlive it.
  HostBatch(Device& device, const ProgramMemory& memory, const StepShape& shape, const Op& op);
  // i32 of shape (rows, positions).
  [[nodiscard]] Tensor tokens() const { return {tokens_.host(), DType::kI32, shape_}; }
  [[nodiscard]] Tensor targets() const { return {targets_.host(), DType::kI32, shape_}; }
  // Starts to copy both on the stream.
  void send(Stream& stream) const;

 private:
  Shape shape_;
  Mirror tokens_;
  Mirror targets_;
};

}  // namespace gxp
