// The learning rate of each optimizer step.
#pragma once

#include <cstdint>

#include "lib/config/run_config.h"

namespace gxp {

// The rate of step t = `step` >= 1: peak * t / warmup_steps in the warm-up, then the schedule's
// shape (lib/config/lr_schedules.inc; the formulas are in lr_schedule.cc) up to step T =
// total_steps (0: `train_steps`), whose rate later steps keep.
// Throws kConfig if no schedule has that name. Pure.
double learning_rate(const LrScheduleConfig& schedule, double peak, int64_t step,
                     int64_t train_steps);

}  // namespace gxp
