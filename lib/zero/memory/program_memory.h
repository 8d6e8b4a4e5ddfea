// The memory behind a step program: every buffer that it names, as bytes on a device.
#pragma once

#include <vector>

#include "lib/device/device.h"
#include "lib/program/step_program.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// Allocates each persistent buffer of the device by its kind, and one arena for all others. Nothing
// is allocated later. Offloaded buffers have no memory here (offloaded_memory.h).
//   Ownership  owns what it allocated; shared memory belongs to the ProgramMemory that it was taken
//              from.
class ProgramMemory {
 public:
  // `program` outlives it. `shareable`: peers can map what it allocates
  // (Device::allocate_shareable()).
  ProgramMemory(Device& device, const StepProgram& program, bool shareable = false)
      : program_(program), shareable_(shareable) {
    place(device);
  }
  // The memory of a second program over the same model, which runs between the steps of the first:
  // it shares `base`'s parameters, and its arena if that is large enough.
  ProgramMemory(Device& device, const StepProgram& program, const ProgramMemory& base)
      : program_(program),
        shareable_(base.shareable_),
        parameters_(base.parameters_),
        arena_(base.arena_) {
    place(device);
  }

  // What it has allocated, in the order of the program's buffers, without the optimizer's state:
  // where the operands of collective calls are.
  [[nodiscard]] const std::vector<Memory>& operands() const { return operands_; }
  [[nodiscard]] Memory of(BufferId buffer) const { return places_[size_t(buffer)]; }
  // All elements of a buffer.
  [[nodiscard]] Tensor tensor(BufferId buffer) const;
  // The bytes that a use touches, for Work::accesses; none of what is offloaded, which one lane
  // alone touches.
  [[nodiscard]] Access access(const BufferUse& use) const;

 private:
  void place(Device& device);
  [[nodiscard]] Memory own(Device& device, const MemoryUse& use);

  const StepProgram& program_;
  bool shareable_;
  std::vector<Buffer> owned_;
  std::vector<Memory> operands_;
  std::vector<Memory> places_;  // by BufferId
  Memory parameters_;
  Memory arena_;
};

}  // namespace gxp
