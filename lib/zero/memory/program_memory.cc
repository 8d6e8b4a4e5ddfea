#include "lib/zero/memory/program_memory.h"

namespace gxp {

void ProgramMemory::place(Device& device) {
  if (program_.arena_bytes > arena_.bytes) {
    MemoryUse arena;
    arena.by_kind = program_.arena_by_kind;
    arena_ = own(device, arena);
  }
  for (size_t id = 0; id < program_.buffers.size(); ++id) {
    const BufferSpec& buffer = program_.buffers[id];
    if (buffer.storage != Storage::kDevice) {
      places_.emplace_back();
    } else if (!buffer.persistent) {
      places_.push_back(arena_.slice(buffer.offset, buffer.bytes));
    } else if (BufferId(id) == program_.parameters && parameters_.data != nullptr) {
      places_.push_back(parameters_);
    } else {
      MemoryUse use;
      use[buffer.kind] = buffer.bytes;
      places_.push_back(own(device, use));
    }
  }
  parameters_ = of(program_.parameters);
}

Memory ProgramMemory::own(Device& device, const MemoryUse& use) {
  owned_.push_back(shareable_ ? device.allocate_shareable(use) : device.allocate(use));
  const Memory memory = owned_.back().memory();
  if (use.total() > use[MemoryKind::kOptimizer]) operands_.push_back(memory);
  return memory;
}

Tensor ProgramMemory::tensor(BufferId buffer) const {
  const Memory memory = of(buffer);
  const DType dtype = program_.buffers[size_t(buffer)].dtype;
  return {memory, dtype, Shape{memory.bytes / size_of(dtype)}};
}

Access ProgramMemory::access(const BufferUse& use) const {
  if (program_.buffers[size_t(use.buffer)].storage != Storage::kDevice) return {};
  const Memory memory = of(use.buffer).slice(use.bytes.begin, use.bytes.count);
  return {memory.data, memory.bytes, use.write};
}

}  // namespace gxp
