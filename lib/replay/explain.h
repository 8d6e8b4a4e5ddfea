// Of what the bytes of a run are made, line by line.
#pragma once

#include <vector>

#include "lib/estimate/term.h"
#include "lib/replay/memory.h"

namespace gxp {

// What a device holds for a step: each persistent buffer, with the formula of its share (P: the
// model's parameters and their padding, S: ranks that share one copy); the largest buffers of the
// arena at the peak, the others, and the gaps; the collectives' scratch. Their sum is the phase
// "step".
std::vector<Term> explain_run(const RunPlan& plan, const RunMemory& memory);

}  // namespace gxp
