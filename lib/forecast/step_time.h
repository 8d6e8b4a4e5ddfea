// How long a step takes: each operation's time from its arithmetic, its memory or its collective,
// then the lanes of the program side by side. Pure.
//
// An operation on the compute lane takes
//   floating-point operations / flops + bytes that it touches / bytes_per_s,
// a collective what the ranks' own cost model predicts. An operation begins when its lane is free
// and all that it waits for has ended. Where the compute lane waits for the other one,
// communication is exposed; so is what is under way when the compute lane has ended.
#pragma once

#include <vector>

#include "lib/forecast/traffic.h"
#include "lib/plan/run_plan.h"

namespace gxp {

// Of one rank, all of its threads together.
struct Speed {
  double flops = 0;        // floating-point operations per second, in matrix products
  double bytes_per_s = 0;  // of memory, in operations without
};

struct OpTime {
  double begin = 0;  // seconds from the start of the step
  double end = 0;
  double waited = 0;  // for communication, on the compute lane, since the operation before it
  OpId waited_for = -1;
};

struct StepTime {
  std::vector<OpTime> ops;  // by OpId
  double seconds = 0;
  double compute_seconds = 0;
  double comm_seconds = 0;     // in which the comm lane is busy
  double exposed_seconds = 0;  // of them, in which the compute lane waits or has ended
};

// Floating-point operations of one operation, on one rank.
double flops_of(const RunPlan& plan, const Op& op);

StepTime time_step(const RunPlan& plan, const std::vector<OpTraffic>& traffic, const Speed& speed);

}  // namespace gxp
