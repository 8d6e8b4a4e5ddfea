// Appends to a step program: operations, the buffers that they name, and the bytes of them that
// they touch. Knows nothing of models and strategies; all other writers write through it.
//
//   References  an Op& is valid until the next operation is emitted, a BufferSpec& until the next
//               buffer is made.
#pragma once

#include <string>

#include "lib/program/step_program.h"

namespace gxp {

class ProgramWriter {
 public:
  Op& emit(OpKind kind, Lane lane, int unit = -1, int micro = -1);
  Op& emit_on_wrap(OpKind kind, Lane lane, int wrap);
  // Emits a collective on the comm lane, among the members of `call.group`.
  Op& emit_collective(OpKind kind, int wrap, const OpCollective& call);

  // Make a buffer that lives from the first step to the last, and one that lives from its first use
  // to its last.
  BufferId persistent(const std::string& name, MemoryKind kind, size_t bytes,
                      DType dtype = DType::kF32);
  BufferId buffer(const std::string& name, MemoryKind kind, size_t bytes,
                  DType dtype = DType::kF32);

  // Notes that `op` touches all of a buffer.
  void use(Op& op, BufferId id, bool writes);
  void read(Op& op, BufferId id) { use(op, id, false); }
  void write(Op& op, BufferId id) { use(op, id, true); }
  // Notes that `op` touches these elements of a buffer, or `count` elements of a view.
  void use_elements(Op& op, BufferId id, const Range& elements, bool writes);
  void use_view(Op& op, const FlatView& view, size_t count, bool writes);

  [[nodiscard]] BufferSpec& spec(BufferId id) { return program.buffers[size_t(id)]; }

  StepProgram program;
};

}  // namespace gxp
