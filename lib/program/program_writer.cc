#include "lib/program/program_writer.h"

namespace gxp {

Op& ProgramWriter::emit(OpKind kind, Lane lane, int unit, int micro) {
  Op& op = program.ops.emplace_back();
  op.kind = kind;
  op.lane = lane;
  op.unit = unit;
  op.micro = micro;
  return op;
}

Op& ProgramWriter::emit_on_wrap(OpKind kind, Lane lane, int wrap) {
  Op& op = emit(kind, lane);
  op.wrap = wrap;
  return op;
}

Op& ProgramWriter::emit_collective(OpKind kind, int wrap, const OpCollective& call) {
  Op& op = emit_on_wrap(kind, Lane::kComm, wrap);
  op.collective = call;
  return op;
}

BufferId ProgramWriter::persistent(const std::string& name, MemoryKind kind, size_t bytes,
                                   DType dtype) {
  const BufferId id = buffer(name, kind, bytes, dtype);
  spec(id).persistent = true;
  return id;
}

BufferId ProgramWriter::buffer(const std::string& name, MemoryKind kind, size_t bytes,
                               DType dtype) {
  BufferSpec& buffer = program.buffers.emplace_back();
  buffer.name = name;
  buffer.kind = kind;
  buffer.bytes = bytes;
  buffer.dtype = dtype;
  return BufferId(program.buffers.size()) - 1;
}

void ProgramWriter::use(Op& op, BufferId id, bool writes) {
  op.uses.push_back({id, {0, spec(id).bytes}, writes});
}

void ProgramWriter::use_elements(Op& op, BufferId id, const Range& elements, bool writes) {
  const size_t size = size_of(spec(id).dtype);
  op.uses.push_back({id, {elements.begin * size, elements.count * size}, writes});
}

void ProgramWriter::use_view(Op& op, const FlatView& view, size_t count, bool writes) {
  use_elements(op, view.buffer, {view.begin, count}, writes);
}

}  // namespace gxp
