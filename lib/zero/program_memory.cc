#include "lib/zero/program_memory.h"

#include <utility>

namespace gxp {

ProgramMemory::ProgramMemory(Device& device, const StepProgram& program) {
  MemoryUse arena;
  arena.by_kind = program.arena_by_kind;
  owned_.push_back(device.allocate(arena));
  place(device, program, owned_.back().memory());
}

ProgramMemory::ProgramMemory(Device& device, const StepProgram& program, const ProgramMemory& base)
    : parameters_(base.parameters_) {
  if (program.arena_bytes <= base.arena_.bytes) {
    place(device, program, base.arena_);
    return;
  }
  MemoryUse arena;
  arena.by_kind = program.arena_by_kind;
  owned_.push_back(device.allocate(arena));
  place(device, program, owned_.back().memory());
}

void ProgramMemory::place(Device& device, const StepProgram& program, Memory arena) {
  arena_ = arena;
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const BufferSpec& buffer = program.buffers[id];
    dtypes_.push_back(buffer.dtype);
    is_offloaded_.push_back(buffer.storage != Storage::kDevice);
    if (buffer.storage != Storage::kDevice) {
      places_.emplace_back();
    } else if (!buffer.persistent) {
      places_.push_back(arena.slice(buffer.offset, buffer.bytes));
    } else if (BufferId(id) == program.parameters && parameters_.data != nullptr) {
      places_.push_back(parameters_);
    } else {
      owned_.push_back(device.allocate(buffer.bytes, buffer.kind));
      places_.push_back(owned_.back().memory());
    }
  }
  parameters_ = places_[size_t(program.parameters)];
}

Tensor ProgramMemory::tensor(BufferId buffer) const {
  const Memory memory = of(buffer);
  const DType dtype = dtypes_[size_t(buffer)];
  return {memory, dtype, Shape{memory.bytes / size_of(dtype)}};
}

Access ProgramMemory::access(const BufferUse& use) const {
  if (is_offloaded_[size_t(use.buffer)]) return {};
  const Memory memory = of(use.buffer).slice(use.bytes.begin, use.bytes.count);
  return {memory.data, memory.bytes, use.write};
}

}  // namespace gxp
