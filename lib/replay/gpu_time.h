// How long the kernels of a step take on a GPU: a roofline of each, with the rates of
// replay/hardware.h. Pure. gxp train --time-by-class measures the same classes.
//
//   product     FLOPs at the share of the 16-bit (8-bit) rate that a large product reaches, and as
//               much more as its three widths are narrow; its bytes, if they take longer. In 8 bits
//               the passes that make codes count as part of their product
//   attention   FLOPs at the share of fused attention, in proportion to heads narrower than 128
//               channels, where the exponentials of scores set the pace; backward 2.5 times the
//               FLOPs at a lower share: one for sums of a fixed order, one for those of any
//               order (train.deterministic off). Rows of documents that are kept apart count as
//               rows of one: their attention leaves out what lies before a document, but gxp's own
//               kernels compute it, whose rate is not known apart
//   the rest    bytes at the share of the memory's rate that one pass reaches, or instructions at
//               the lanes' rate, if they take longer
//   gaps        one between two kernels, of whatever class
//   ideal       FLOPs at the data sheet's 16-bit (8-bit) rate or bytes at its memory's, whichever
//               take longer; no gaps
#pragma once

#include <vector>

#include "lib/base/error.h"
#include "lib/replay/hardware.h"
#include "lib/replay/kernel_work.h"
#include "lib/replay/step_time.h"

namespace gxp {

// All kernels of a class, in one step of a rank.
struct ClassTime {
  KernelClass of = KernelClass::kNorms;
  double seconds = 0;
  double ideal_seconds = 0;
  double flops = 0;
  double bytes = 0;
};

struct StepClasses {
  std::vector<ClassTime> classes;  // in their order; those with any kernel
  double kernels = 0;
  double gap_seconds = 0;  // between all kernels
  // All that the compute lane does: StepTime::compute_seconds with on_gpu().
  [[nodiscard]] double seconds() const;
};

// Whether the run computes in 16 bits, and in 8 only where the GPU's rate of that is known; if not,
// with the setting that would.
Support can_predict(const RunPlan& plan, const Gpu& gpu);
// The same as an error: kUsage.
void check_predictable(const RunPlan& plan, const Gpu& gpu);

ComputeTime on_gpu(const Gpu& gpu);
StepClasses time_by_class(const RunPlan& plan, const Gpu& gpu);

}  // namespace gxp
