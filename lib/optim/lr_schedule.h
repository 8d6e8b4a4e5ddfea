// The learning rate of each optimizer step.
#pragma once

#include <cstdint>

#include "lib/config/run_config.h"

namespace gxp {

// The rate of step t = `step` >= 1, where w = warmup_steps, T = total_steps (0: `train_steps`):
//   t <= w    peak * t / w
//   after w   constant, warmup: peak
//             linear: min_lr + (peak - min_lr) (1 - x), x = (t - w) / (T - w)
//             cosine: min_lr + (peak - min_lr) / 2 (1 + cos(pi x))
//             wsd: peak, then linear with w replaced by T - decay_fraction T (if that is later)
//   t >= T    linear, cosine, wsd: min_lr
// Throws kConfig if no schedule has that name. Pure.
// Sources: cosine: Loshchilov & Hutter, arXiv:1608.03983, without restarts; wsd (warm-up, stable,
// decay): Hu et al., arXiv:2404.06395.
double learning_rate(const LrScheduleConfig& schedule, double peak, int64_t step,
                     int64_t train_steps);

}  // namespace gxp
