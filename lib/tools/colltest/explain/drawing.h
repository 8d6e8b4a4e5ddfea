// A schedule for people: as a table and as a picture. The text depends on the arguments alone.
// Rounds are those of one_port_replay.h.
#pragma once

#include <string>

#include "lib/collective/algorithm/schedule.h"

namespace gxp {

// One line for each step, rank after rank, under a header line. If a message arrives later than the
// same step's message leaves, its rounds are "leaves..arrives"; a local step has none.
std::string schedule_table(const Schedule& schedule);

// An SVG document, readable for up to 16 ranks: a column for each rank, rounds downwards, an arrow
// for each message with the range it carries, a plus where it is folded, a box where a rank copies
// or folds within itself.
std::string schedule_svg(const Algorithm& algorithm, const CallShape& shape,
                         const Schedule& schedule);

}  // namespace gxp
