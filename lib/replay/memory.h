// The memory of a rank in a run: what its device holds for the step program, for the collectives
// and for the passes between steps. Agrees with the device's own tracker. Pure.
//
// Not counted: what has no place on the device, such as the data loader's rows, code and stacks,
// and the memory that the ranks of a host share.
#pragma once

#include <string>
#include <vector>

#include "lib/program/replay.h"
#include "lib/program/run_plan.h"
#include "lib/replay/device_terms.h"
#include "lib/replay/term.h"
#include "lib/replay/traffic.h"

namespace gxp {

// A part of the run, and the most that the device holds in it.
struct Phase {
  std::string name;  // "step"
  KindBytes bytes{};
};

struct RunMemory {
  MemoryReplay step;
  std::vector<Phase> phases;  // start, step and, with validation data, validation
  KindBytes peak{};           // of the phase with the highest peak
  std::string peak_phase;     // its name
  std::string peak_at;        // the operation of a step at its peak
};

RunMemory memory_of_run(const RunPlan& plan, const Network& network, int rank,
                        const DeviceTerms& terms);

// What a checkpoint's files hold, of all ranks together: weights in f32, optimizer state, and what a
// codec has not sent yet. Frozen tensors are in files of their own.
struct SavedBytes {
  uint64_t trained = 0;
  uint64_t frozen = 0;

  [[nodiscard]] uint64_t total() const { return trained + frozen; }
};
SavedBytes saved_bytes(const RunPlan& plan);

// The `count` largest buffers at the peak of a step: "gradients 80 MiB, saved h.3 12 MiB".
std::string largest_at_peak(const RunPlan& plan, const RunMemory& memory, size_t count);

// What a device holds for a step: each persistent buffer, with the formula of its share (P: the
// model's parameters and their padding, S: ranks that share one copy); the largest buffers of the
// arena at the peak, the others, and the gaps; the collectives' scratch. Their sum is the phase
// "step".
std::vector<Term> explain_run(const RunPlan& plan, const RunMemory& memory);

}  // namespace gxp
