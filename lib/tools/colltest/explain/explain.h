// The plan of each case with its reason, without starting a rank. Pure.
#pragma once

#include <span>
#include <string>

#include "lib/collective/tune/selection.h"
#include "lib/report/report.h"
#include "lib/tools/colltest/cases.h"

namespace gxp {

struct Explanation {
  Report plans;       // a row per case: algorithm, channels, segment, predicted time, reason
  std::string steps;  // of the last case, as a table; "" if it has none
  std::string svg;    // the same as an SVG document
  std::string title;  // "all_reduce of 64 MiB f32 by ring on 4 ranks"
};

// At least one case.
Explanation explain(std::span<const BenchCase> cases, const GroupTopology& topology,
                    const SelectionSettings& settings, const Profile& profile, MemoryOrigin memory);

}  // namespace gxp
