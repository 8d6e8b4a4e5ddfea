// The learning rate of each optimizer step.
#pragma once

#include <cstdint>

#include "lib/config/run_config.h"

namespace gxp {

// The rate of step t = `step` >= 1: peak * t / warmup_steps in the warm-up, then the schedule's
// shape (lib/config/lr_schedules.inc; the formulas are in lr_schedule.cc), which reaches min_lr
// after step T = total_steps (0: `train_steps`): step T still has a rate above it, T + 1 and later
// ones have min_lr. PyTorch's schedulers also count the steps before this one: CosineAnnealingLR(T)
// or LinearLR(1, min_lr / peak, T) where there is no warm-up; with one of w steps,
// SequentialLR(LinearLR(1 / w, 1, w - 1), such a one of T - w + 1 steps, from step w on).
// Throws kConfig if no schedule has that name. Pure.
double learning_rate(const LrScheduleConfig& schedule, double peak, int64_t step,
                     int64_t train_steps);

}  // namespace gxp
