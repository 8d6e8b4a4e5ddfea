#include "lib/optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "lib/base/find_row.h"

namespace gxp {
namespace {

// A step t = `step` after the warm-up. In the formulas w = max(warmup, 1), T = total, and x is the
// share of the steps from w to T that is over before step t: (t - w) / (T - w + 1), at most 1.
struct Point {
  double peak, floor;  // learning rates
  double step, warmup, total;
  double decay_fraction;
};

// The share of the steps from `begin` to `total` that is over before p.step, at most 1.
double share_over(const Point& p, double begin) {
  if (p.step > p.total) return 1.0;
  return std::max(0.0, (p.step - begin) / (p.total - begin + 1.0));
}

double fall(const Point& p, double share) { return p.floor + (p.peak - p.floor) * share; }

double constant(const Point& p) { return p.peak; }

// floor + (peak - floor) (1 - x)
double linear(const Point& p) { return fall(p, 1.0 - share_over(p, p.warmup)); }

// floor + (peak - floor) / 2 (1 + cos(pi x)): Loshchilov & Hutter, arXiv:1608.03983, without
// restarts.
double cosine(const Point& p) {
  return fall(p, 0.5 * (1.0 + std::cos(std::numbers::pi * share_over(p, p.warmup))));
}

// Warm-up, stable, decay: peak, then linear with w replaced by T - decay_fraction T + 1, if that is
// later: Hu et al., arXiv:2404.06395.
double wsd(const Point& p) {
  const double begin = std::max(p.warmup, p.total - p.decay_fraction * p.total + 1.0);
  // floor + (peak - floor) is not always peak in floating point.
  return p.step <= begin && p.step <= p.total ? p.peak : fall(p, 1.0 - share_over(p, begin));
}

struct ScheduleRow {
  std::string_view name;
  double (*rate)(const Point&);
};

constexpr std::array kSchedules{
#define GXP_LR_SCHEDULE(name, shape, rate) ScheduleRow{#name, rate},
#include "lib/config/lr_schedules.inc"
#undef GXP_LR_SCHEDULE
};

}  // namespace

double learning_rate(const LrScheduleConfig& schedule, double peak, int64_t step,
                     int64_t train_steps) {
  const ScheduleRow& row =
      find_row(kSchedules, schedule.name, "lr_schedule.name", ErrorKind::kConfig);
  if (step <= schedule.warmup_steps) return peak * double(step) / schedule.warmup_steps;
  const int64_t total = schedule.total_steps == 0 ? train_steps : schedule.total_steps;
  return row.rate({peak, schedule.min_lr, double(step),
                   std::max(1.0, double(schedule.warmup_steps)), double(total),
                   schedule.decay_fraction});
}

}  // namespace gxp
