// Pictures of a planned run. The text depends on the arguments alone.
#pragma once

#include <string>

#include "lib/program/replay.h"
#include "lib/replay/step_time.h"

namespace gxp {

// Bytes that live over the operations, for a terminal: as many columns as operations, up to 72,
// each as high as the most in it; a caret under the peak.
std::string memory_plot(const MemoryReplay& replay);

// The same as an SVG document, stacked by kind.
std::string memory_svg(const StepProgram& program, const MemoryReplay& replay);

// The lanes of a step over its predicted time, a row each, as an SVG document.
std::string timeline_svg(const StepProgram& program, const StepTime& time);

}  // namespace gxp
