// A simulation as a trace for chrome://tracing and ui.perfetto.dev: a row for each rank, a bar for
// each step. Source: "Trace Event Format", complete events (ph "X"), times in microseconds.
#pragma once

#include <string>

#include "lib/tools/colltest/simulate/simulator.h"

namespace gxp {

// JSON of result.steps, so options.keep_steps must have been set.
std::string to_chrome_trace(const SimulationResult& result);

}  // namespace gxp
