// Writes down which activations of a unit live when: what its forward keeps for its backward, what
// is made again in between, and scratch.
#pragma once

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/arch/recompute.h"
#include "lib/program/program_writer.h"

namespace gxp {

class ActivationWriter : protected ProgramWriter {
 protected:
  // Of micro-batches of `tokens`; `recompute` is by unit.
  ActivationWriter(size_t tokens, std::vector<Recompute> recompute)
      : tokens_(tokens), recompute_(std::move(recompute)), saved_(recompute_.size()) {}

  [[nodiscard]] Recompute recompute_of(int unit) const { return recompute_[size_t(unit)]; }

  // Forward writes all; what it does not keep nobody reads, so its memory is free afterwards.
  void save(Op& op, const UnitSpec& unit) {
    for (const ActivationSpec& spec : unit.saved) {
      const bool kept = keeps(recompute_of(op.unit), spec);
      op.saved.push_back(
          make(unit, spec, kept ? MemoryKind::kActivations : MemoryKind::kWorkspace));
      write(op, op.saved.back());
    }
    saved_[size_t(op.unit)] = op.saved;
  }

  // Reads what forward has kept, and writes the others anew.
  void save_again(Op& op, const UnitSpec& unit) {
    op.saved = saved_[size_t(op.unit)];
    for (size_t i = 0; i < op.saved.size(); ++i) {
      const bool kept = keeps(recompute_of(op.unit), unit.saved[i]);
      if (!kept) {
        op.saved[i] = make(unit, unit.saved[i], MemoryKind::kActivations);
        program_.buffers.back().name += ", made again";
      }
      use(op, op.saved[i], !kept);
    }
    saved_[size_t(op.unit)] = op.saved;
  }

  // Backward may work in place in it.
  void use_saved(Op& op) {
    op.saved = saved_[size_t(op.unit)];
    for (const BufferId id : op.saved) write(op, id);
  }

  void scratch(Op& op, const UnitSpec& unit, const std::vector<ActivationSpec>& specs) {
    for (const ActivationSpec& spec : specs)
      op.scratch.push_back(make(unit, spec, MemoryKind::kWorkspace));
    for (const BufferId id : op.scratch) write(op, id);
  }

  const size_t tokens_;

 private:
  BufferId make(const UnitSpec& unit, const ActivationSpec& spec, MemoryKind kind) {
    return buffer(fmt::format("{} {}", unit.name, spec.name), kind,
                  spec.count(tokens_) * size_of(spec.dtype), spec.dtype);
  }

  const std::vector<Recompute> recompute_;
  std::vector<std::vector<BufferId>> saved_;  // by unit
};

}  // namespace gxp
