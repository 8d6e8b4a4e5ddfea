// A step program's memory over its operations, by replaying the lives of its buffers: nothing is
// estimated that the program states. Pure; bytes of one rank.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/base/memory_kind.h"
#include "lib/program/step_program.h"

namespace gxp {

using KindBytes = std::array<uint64_t, kMemoryKindCount>;  // by MemoryKind

uint64_t total_of(const KindBytes& bytes);
KindBytes sum_of(const KindBytes& a, const KindBytes& b);

struct MemoryReplay {
  KindBytes persistent{};  // buffers that outlive the step
  uint64_t arena_bytes = 0;
  // The memory that a device holds for the program, from before the first operation until after the
  // last: the persistent buffers, and the arena as it is filled at the peak, its gaps counted as
  // workspace.
  KindBytes allocated{};
  std::vector<KindBytes> live;  // per operation: memory in use while it runs
  OpId peak = 0;                // the first operation at which the most memory is in use
};

// Cost: O(operations + buffers).
MemoryReplay replay_memory(const StepProgram& program);

// Additional device memory while `program` runs between the steps of `base`, with its parameters,
// and in its arena if that is large enough.
KindBytes allocated_beside(const StepProgram& program, const StepProgram& base);

}  // namespace gxp
