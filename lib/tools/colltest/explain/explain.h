// The plan of each case with its reason, without starting a rank. Pure.
#pragma once

#include <span>
#include <string>

#include "lib/collective/algorithm/schedule.h"
#include "lib/collective/tune/selection.h"
#include "lib/report/report.h"
#include "lib/tools/colltest/cases.h"

namespace gxp {

// A schedule for people: as a table and as a picture. The text depends on the arguments alone.
// Rounds are those of one_port_replay.h.

// One line for each step, rank after rank, under a header line. If a message arrives later than the
// same step's message leaves, its rounds are "leaves..arrives"; a local step has none.
std::string schedule_table(const Schedule& schedule);

// An SVG document, readable for up to 16 ranks: a column for each rank, rounds downwards, an arrow
// for each message with the range it carries, a plus where it is folded, a box where a rank copies
// or folds within itself.
std::string schedule_svg(const Algorithm& algorithm, const CallShape& shape,
                         const Schedule& schedule);

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
