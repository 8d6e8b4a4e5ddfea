// The tables of gxp shard-plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/replay/hardware.h"
#include "lib/replay/memory.h"
#include "lib/replay/step_time.h"
#include "lib/replay/traffic.h"
#include "lib/report/report.h"

namespace gxp {

// A run under one strategy, as one rank sees it.
struct PlannedStep {
  RunPlan plan;
  std::vector<OpTraffic> traffic;
  RunMemory memory;
  StepTime time;
  int rank = 0;
};

// Seconds that the compute lane waits for an operation, by OpId.
std::map<OpId, double> waited_for(const PlannedStep& step);

// strategy, world_size, parameters, padding, wire_bytes_per_rank_per_step (of the rank),
// wire_bytes_of_ranks, wire_bytes_between_hosts_of_ranks, step_seconds, compute_seconds,
// comm_seconds, exposed_comm_seconds, peak_bytes, peak_phase, peak_at.
void add_step_facts(Report& report, const PlannedStep& step);
// wire[] of {operation, among, collective, algorithm, calls, bytes, between_hosts_bytes, seconds,
// exposed_seconds}: a row for each kind of operation and algorithm; bytes are those that the rank
// sends.
void add_wire(Report& report, const PlannedStep& step);
// units[] of {unit, name, tensors, parameters, padding, elements, shard_elements,
// parameters_bytes, exposed_seconds}; parameters_bytes: what the rank keeps.
void add_units(Report& report, const PlannedStep& step);
// tensors[] of {unit, tensor, shape, elements, ranks}: "0-1,4-5", those that hold part of its
// optimizer state.
void add_tensors(Report& report, const PlannedStep& step);
// program[] of {op, lane, operation, read_bytes, written_bytes, wire_bytes, begin_seconds,
// end_seconds, after}.
void add_program(Report& report, const PlannedStep& step);
// Facts: tokens_per_second and mfu of the predicted step; classes[] of {class, milliseconds, share,
// ideal_milliseconds, tflop, gb}: a row for each class of kernels, the gaps between kernels, and
// where there are several ranks what the compute lane waits for. Their times sum to step_seconds.
void add_classes(Report& report, const PlannedStep& step, const Gpu& gpu);
// strategies[] of {strategy, bytes by kind, peak_bytes, wire_bytes_per_rank_per_step, step_seconds,
// exposed_comm_seconds}.
void add_strategies(Report& report, const std::vector<PlannedStep>& steps);

// The best of a run's variants, from the smallest on.
struct RunChoices {
  size_t tried = 0;
  std::vector<PlannedStep> best;
  std::vector<RunConfig> settings;  // of the best
  // The fastest of them with each comm.codec, and with each comm.gather_codec, where it has none and
  // would compress; by codecs().
  std::vector<PlannedStep> with_codec = {}, with_gather_codec = {};
};
// Facts, and plans[] of {peak_bytes, host_bytes, file_bytes, step_seconds, exposed_seconds,
// strategy, shard_size, micro_batch, grad_accum, recompute, offload, wire_bytes}. With codecs to
// suggest, codecs[] and gather_codecs[] of {codec, step_seconds, speedup, peak_bytes,
// between_hosts_bytes}.
void add_choices(Report& report, const RunChoices& choices);

}  // namespace gxp
