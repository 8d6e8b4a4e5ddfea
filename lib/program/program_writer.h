// What every operation of a step program is written with: itself, the buffers that it names, and
// the bytes of them that it touches. Knows nothing of models and strategies.
#pragma once

#include <string>

#include "lib/program/step_program.h"

namespace gxp {

class ProgramWriter {
 protected:
  Op& emit(OpKind kind, Lane lane, int unit, int micro) {
    Op& op = program_.ops.emplace_back();
    op.kind = kind;
    op.lane = lane;
    op.unit = unit;
    op.micro = micro;
    return op;
  }

  Op& emit_on_wrap(OpKind kind, Lane lane, int wrap) {
    Op& op = emit(kind, lane, -1, -1);
    op.wrap = wrap;
    return op;
  }

  // On the comm lane: over `count` elements of all members.
  Op& emit_collective(OpKind kind, int wrap, RankGroup group, size_t count,
                      DType dtype = DType::kF32) {
    Op& op = emit_on_wrap(kind, Lane::kComm, wrap);
    op.group = group;
    op.count = count;
    op.dtype = dtype;
    return op;
  }

  BufferId persistent(const std::string& name, MemoryKind kind, size_t bytes,
                      DType dtype = DType::kF32) {
    const BufferId id = add(name, kind, bytes, dtype);
    program_.buffers[size_t(id)].persistent = true;
    return id;
  }
  BufferId buffer(const std::string& name, MemoryKind kind, size_t bytes,
                  DType dtype = DType::kF32) {
    return add(name, kind, bytes, dtype);
  }
  void use(Op& op, BufferId id, bool writes) {
    op.uses.push_back({id, {0, program_.buffers[size_t(id)].bytes}, writes});
  }
  void read(Op& op, BufferId id) { use(op, id, false); }
  void write(Op& op, BufferId id) { use(op, id, true); }

  void use_elements(Op& op, BufferId id, const Range& elements, bool writes) {
    const size_t size = size_of(program_.buffers[size_t(id)].dtype);
    op.uses.push_back({id, {elements.begin * size, elements.count * size}, writes});
  }
  void use_view(Op& op, const FlatView& view, const Range& flat, bool writes) {
    use_elements(op, view.buffer, {view.begin, flat.count}, writes);
  }

  StepProgram program_;

 private:
  BufferId add(const std::string& name, MemoryKind kind, size_t bytes, DType dtype) {
    BufferSpec& buffer = program_.buffers.emplace_back();
    buffer.name = name;
    buffer.kind = kind;
    buffer.bytes = bytes;
    buffer.dtype = dtype;
    return BufferId(program_.buffers.size()) - 1;
  }
};

}  // namespace gxp
