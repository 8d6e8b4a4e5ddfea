#include "lib/train/profiled_steps.h"

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {

void ProfiledSteps::begin_step(int step) {
  if (!range_ || profiles_ || step < range_->first || step > range_->last) return;
  device_.set_profiled(true);
  profiles_ = true;
  log_info("profiler: begins with step {}", step);
}

void ProfiledSteps::end_step(int step) {
  if (!profiles_ || step < range_->last) return;
  profiles_ = false;
  device_.set_profiled(false);
  log_info("profiler: ends with step {}", step);
}

void ProfiledSteps::end() noexcept {
  try {
    if (profiles_) device_.set_profiled(false);
  } catch (const Error& error) {
    log_warn("profiler: {}", error.what());
  }
}

}  // namespace gxp
