#include "lib/tools/colltest/simulate/step_source.h"

#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"

namespace gxp {
namespace {

// Leaves an algorithm's function early.
struct WindowIsFull {};

}  // namespace

StepSource::StepSource(const Algorithm& algorithm, const CallShape& shape, size_t window)
    : algorithm_(algorithm), shape_(shape), window_(window), ranks_(size_t(shape.world_size)) {
  GXP_ASSERT(window > 0);
}

const CollectiveStep* StepSource::next(int rank) {
  Window& window = ranks_[size_t(rank)];
  if (window.used == window.steps.size() && !window.is_last) {
    record(rank, window.first + window.used);
  }
  return window.used == window.steps.size() ? nullptr : &window.steps[window.used++];
}

void StepSource::record(int rank, size_t first) {
  Window& window = ranks_[size_t(rank)];
  window.steps.clear();
  window.first = first;
  window.used = 0;
  size_t skipped = 0;
  try {
    for_each_step(algorithm_, rank, shape_, [&](const CollectiveStep& step) {
      if (skipped++ < first) return;
      if (window.steps.size() == window_) throw WindowIsFull{};
      window.steps.push_back(step);
    });
    window.is_last = true;
  } catch (const WindowIsFull&) {  // the rest comes with the next window
  }
}

}  // namespace gxp
