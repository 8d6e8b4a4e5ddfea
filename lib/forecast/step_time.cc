#include "lib/forecast/step_time.h"

#include <algorithm>
#include <array>

namespace gxp {
namespace {

double tokens_of(const RunPlan& plan) { return double(plan.shape.rows * plan.shape.positions); }

double attention_flops(const RunPlan& plan) {
  return tokens_of(plan) * 2 * double(plan.architecture.attention_channels) *
         double(plan.shape.positions);
}

// Parameters of a unit that a matrix product multiplies, and attention's products per token, both
// forward.
double forward_flops(const RunPlan& plan, int unit) {
  const Architecture& architecture = plan.architecture;
  const UnitSpec& spec = architecture.units[size_t(unit)];
  if (spec.kind == UnitKind::kEmbedding) return 0;
  size_t multiplied = spec.parameter_count();
  if (spec.borrows_from >= 0)
    multiplied += architecture.units[size_t(spec.borrows_from)].tensors[0].count();
  const double products = tokens_of(plan) * 2 * double(multiplied);
  return spec.kind == UnitKind::kBlock ? products + attention_flops(plan) : products;
}

// Of a block's forward without its last product; attention's where its output is not kept.
double recompute_flops(const RunPlan& plan, const Op& op) {
  const size_t left_out = plan.architecture.units[size_t(op.unit)].output_parameters;
  const double products = forward_flops(plan, op.unit) - tokens_of(plan) * 2 * double(left_out);
  return op.recompute == Recompute::kFull ? products : products - attention_flops(plan);
}

double touched_bytes(const Op& op) {
  double bytes = 0;
  for (const BufferUse& use : op.uses) bytes += double(use.bytes.count);
  return bytes;
}

double compute_seconds(const RunPlan& plan, const Op& op, const Speed& speed) {
  return flops_of(plan, op) / speed.flops + touched_bytes(op) / speed.bytes_per_s;
}

// Fills in when an operation runs, given those before it.
void place(const StepProgram& program, OpId id, double duration, double lane_free, StepTime& time) {
  const Op& op = program.ops[size_t(id)];
  OpTime& own = time.ops[size_t(id)];
  own.begin = lane_free;
  for (const OpId before : op.after) {
    const double end = time.ops[size_t(before)].end;
    if (end <= own.begin) continue;
    own.begin = end;
    own.waited_for = before;
  }
  own.waited = own.begin - lane_free;
  own.end = own.begin + duration;
}

}  // namespace

double flops_of(const RunPlan& plan, const Op& op) {
  switch (op.kind) {
    case OpKind::kForward:
    case OpKind::kEvaluateLoss:
      return forward_flops(plan, op.unit);
    case OpKind::kRecompute:
      return recompute_flops(plan, op);
    case OpKind::kBackward:
      return 2 * forward_flops(plan, op.unit);
    case OpKind::kLoss:
      return 3 * forward_flops(plan, op.unit);
    default:
      return 0;
  }
}

StepTime time_step(const RunPlan& plan, const std::vector<OpTraffic>& traffic, const Speed& speed) {
  const StepProgram& program = plan.step.program;
  StepTime time;
  time.ops.resize(program.ops.size());
  std::array<double, kLaneCount> lane_free{};
  auto collective = traffic.begin();
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    const bool communicates = collective != traffic.end() && collective->op == OpId(id);
    const double duration =
        communicates ? (collective++)->plan.predicted_seconds : compute_seconds(plan, op, speed);
    place(program, OpId(id), duration, lane_free[size_t(op.lane)], time);
    lane_free[size_t(op.lane)] = time.ops[id].end;
    (op.lane == Lane::kComm ? time.comm_seconds : time.compute_seconds) += duration;
  }
  time.seconds = *std::ranges::max_element(lane_free);
  time.exposed_seconds = time.seconds - time.compute_seconds;
  return time;
}

}  // namespace gxp
