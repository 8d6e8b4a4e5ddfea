// How long a step takes: each operation's time from its arithmetic and its memory, from a
// measurement, or from the ranks' own cost model of collectives; then the lanes of the program side
// by side. Pure.
//
// An operation begins when its lane is free and all that it waits for has ended. Concurrent lanes
// that need more cores than the rank has all slow down equally. While the compute lane waits for
// another lane, communication or offload is exposed; so is the rest of it after the compute lane
// has ended.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "lib/program/run_plan.h"
#include "lib/replay/traffic.h"

namespace gxp {

// Seconds of an operation of the compute lane, on one rank with all of its threads.
using ComputeTime = std::function<double(const RunPlan&, const Op&)>;

struct Speed {
  double flops = 0;        // floating-point operations per second, in matrix products
  double bytes_per_s = 0;  // of memory, in operations without
};
// floating-point operations / flops + bytes that it touches / bytes_per_s.
ComputeTime at_speed(const Speed& speed);

// The measured times of operations of one kind: on one kind of unit, or on none.
struct OpCost {
  OpKind kind = OpKind::kForward;
  std::optional<UnitKind> unit;
  bool accumulate = false;
  double bytes = 0;                  // that each touches
  std::vector<double> seconds = {};  // of each that was seen
};
// Adds the compute lane's operations of a program, of which operation i took seconds[i].
void add_costs(std::vector<OpCost>& costs, const Architecture& architecture,
               const StepProgram& program, const std::vector<double>& seconds);
// Their mean, in proportion to the bytes that an operation touches. Operations whose kind was not
// seen take no time.
ComputeTime as_measured(std::vector<OpCost> costs);

// Bytes a second that the offload lane moves.
struct OffloadSpeed {
  double host_bytes_per_s = 5e9;
  double file_bytes_per_s = 1e9;
};

// Resources that the lanes of a rank share.
struct RankCores {
  double cores = std::numeric_limits<double>::infinity();
  double compute_threads = 1;  // those of the comm lane: 1
};

struct OpTime {
  double begin = 0;  // seconds from the start of the step
  double end = 0;
  double waited = 0;  // that the compute lane waited for communication before it
  OpId waited_for = -1;
};

struct StepTime {
  std::vector<OpTime> ops;  // by OpId
  double seconds = 0;
  double compute_seconds = 0;
  double comm_seconds = 0;     // in which the comm lane is busy
  double offload_seconds = 0;  // in which the offload lane is
  double exposed_seconds = 0;  // of them, in which the compute lane waits or has ended
};

// Floating-point operations of one operation, on one rank.
double flops_of(const RunPlan& plan, const Op& op);

// Bytes that an operation of the compute lane moves to and from its buffers: those that it reads,
// and twice those that the optimizer changes.
double traffic_bytes(const StepProgram& program, const Op& op);

StepTime time_step(const RunPlan& plan, const std::vector<OpTraffic>& traffic,
                   const ComputeTime& compute, const RankCores& cores = {},
                   const OffloadSpeed& offload = {});

}  // namespace gxp
