#include "lib/replay/step_time.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

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

// FLOPs of the products that make the unit's own gradients: its forward's, without frozen tensors.
double gradient_flops(const RunPlan& plan, int unit) {
  const Architecture& architecture = plan.architecture;
  const UnitSpec& spec = architecture.units[size_t(unit)];
  const size_t frozen = spec.parameter_count() - spec.trainable_count();
  double flops = forward_flops(plan, unit) - tokens_of(plan) * 2 * double(frozen);
  if (spec.kind == UnitKind::kEmbedding || spec.borrows_from < 0) return std::max(flops, 0.0);
  const TensorSpec& borrowed = architecture.units[size_t(spec.borrows_from)].tensors[0];
  return borrowed.frozen ? flops - tokens_of(plan) * 2 * double(borrowed.count()) : flops;
}

// FLOPs of a block's forward without its last product; with attention's if its output is not kept.
double recompute_flops(const RunPlan& plan, const Op& op) {
  const size_t left_out = plan.architecture.units[size_t(op.unit)].output_parameters;
  const double products = forward_flops(plan, op.unit) - tokens_of(plan) * 2 * double(left_out);
  return op.buffers.recompute == Recompute::kFull ? products : products - attention_flops(plan);
}

// Of a persistent buffer, with what is offloaded of it.
double elements_of(const StepProgram& program, BufferId id) {
  const BufferSpec& buffer = program.buffers[size_t(id)];
  const size_t rest = buffer.rest == kNoBuffer ? 0 : program.buffers[size_t(buffer.rest)].bytes;
  return double(buffer.bytes + rest) / double(size_of(buffer.dtype));
}

// The optimizer works on its shard of what is trained, also of buffers that have more, and in a
// tile on a part of that.
double touched_share(const StepProgram& program, const Op& op, BufferId buffer) {
  if (op.kind != OpKind::kUpdate && op.kind != OpKind::kMeasureGradients) return 1;
  if (buffer != program.gradients && buffer != program.weights() && buffer != program.parameters)
    return 1;
  size_t whole = 1;  // of the optimizer's elements
  for (const Op& each : program.ops) whole = std::max(whole, each.update.elements.end());
  const size_t touched = op.kind == OpKind::kUpdate ? op.update.elements.count : whole;
  return double(touched) / elements_of(program, buffer);
}

double touched_bytes(const StepProgram& program, const Op& op) {
  double bytes = 0;
  for (const BufferUse& use : op.uses)
    bytes += double(use.bytes.count) * touched_share(program, op, use.buffer);
  return bytes;
}

double offload_seconds(const StepProgram& program, const Op& op, const OffloadSpeed& speed) {
  double seconds = 0;
  for (const Move& move : op.moves) {
    const bool in_file = program.buffers[size_t(move.offloaded)].storage == Storage::kFile;
    seconds += double(move.bytes) / (in_file ? speed.file_bytes_per_s : speed.host_bytes_per_s);
  }
  return seconds;
}

std::optional<UnitKind> unit_kind(const Architecture& architecture, const Op& op) {
  if (op.unit < 0) return std::nullopt;
  return architecture.units[size_t(op.unit)].kind;
}

bool is_of(const OpCost& cost, const Architecture& architecture, const Op& op) {
  return cost.kind == op.kind && cost.accumulate == op.gradients.accumulate &&
         cost.unit == unit_kind(architecture, op);
}

// The operations of a program side by side, from one end of an operation to the next.
class LaneTimeline {
 public:
  LaneTimeline(const StepProgram& program, const std::vector<double>& durations,
               const RankCores& cores)
      : program_(program), durations_(durations), cores_(cores), done_(program.ops.size()) {
    time_.ops.resize(program.ops.size());
    for (size_t id = 0; id < program.ops.size(); ++id)
      lanes_[size_t(program.ops[id].lane)].ops.push_back(OpId(id));
  }

  StepTime run() && {
    for (start_what_can(); is_any_running(); start_what_can()) advance();
    time_.seconds = now_;
    return std::move(time_);
  }

 private:
  struct LaneState {
    std::vector<OpId> ops;
    size_t next = 0;  // of ops; is running if `running`
    bool running = false;
    double left = 0;  // seconds at full speed
    double free = 0;  // since when
  };

  [[nodiscard]] bool is_any_running() const {
    return std::ranges::any_of(lanes_, [](const LaneState& lane) { return lane.running; });
  }

  void start_what_can() {
    for (LaneState& lane : lanes_) {
      if (lane.running || lane.next == lane.ops.size()) continue;
      const OpId id = lane.ops[lane.next];
      const std::vector<OpId>& after = program_.ops[size_t(id)].after;
      if (!std::ranges::all_of(after, [this](OpId before) { return done_[size_t(before)]; }))
        continue;
      OpTime& time = time_.ops[size_t(id)];
      time.begin = now_;
      time.waited = now_ - lane.free;
      for (const OpId before : after)
        if (time.waited > 0 && time_.ops[size_t(before)].end == now_) time.waited_for = before;
      lane.running = true;
      lane.left = durations_[size_t(id)];
    }
  }

  // To the next end of an operation.
  void advance() {
    double wanted = 0;
    double left = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (!lanes_[i].running) continue;
      wanted += Lane(i) == Lane::kCompute ? cores_.compute_threads : 1;
      left = std::min(left, lanes_[i].left);
    }
    now_ += left * std::max(1.0, wanted / cores_.cores);
    for (LaneState& lane : lanes_) {
      if (!lane.running) continue;
      lane.left -= left;
      if (lane.left <= 0) end(lane);
    }
  }

  void end(LaneState& lane) {
    const auto id = size_t(lane.ops[lane.next++]);
    lane.running = false;
    lane.free = now_;
    done_[id] = true;
    time_.ops[id].end = now_;
  }

  const StepProgram& program_;
  const std::vector<double>& durations_;
  const RankCores& cores_;
  std::array<LaneState, kLaneCount> lanes_;
  std::vector<bool> done_;
  double now_ = 0;
  StepTime time_;
};

}  // namespace

double flops_of(const RunPlan& plan, const Op& op) {
  switch (op.kind) {
    case OpKind::kForward:
    case OpKind::kEvaluateLoss:
      return forward_flops(plan, op.unit);
    case OpKind::kRecompute:
      return recompute_flops(plan, op);
    case OpKind::kBackward:
      return forward_flops(plan, op.unit) + gradient_flops(plan, op.unit);
    case OpKind::kLoss:
      return 2 * forward_flops(plan, op.unit) + gradient_flops(plan, op.unit);
    default:
      return 0;
  }
}

double traffic_bytes(const StepProgram& program, const Op& op) {
  const bool changes = op.kind == OpKind::kUpdate || op.kind == OpKind::kUpdateWhole;
  double bytes = 0;
  for (const BufferUse& use : op.uses) {
    const double moved = double(use.bytes.count) * touched_share(program, op, use.buffer);
    bytes += use.write && changes ? 2 * moved : moved;
  }
  return bytes;
}

ComputeTime at_speed(const Speed& speed) {
  return [speed](const RunPlan& plan, const Op& op) {
    return flops_of(plan, op) / speed.flops +
           touched_bytes(plan.step.program, op) / speed.bytes_per_s;
  };
}

void add_costs(std::vector<OpCost>& costs, const Architecture& architecture,
               const StepProgram& program, const std::vector<double>& seconds) {
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.lane != Lane::kCompute) continue;
    auto cost = std::ranges::find_if(
        costs, [&](const OpCost& each) { return is_of(each, architecture, op); });
    if (cost == costs.end())
      cost = costs.insert(cost, {.kind = op.kind,
                                 .unit = unit_kind(architecture, op),
                                 .accumulate = op.gradients.accumulate,
                                 .bytes = touched_bytes(program, op)});
    cost->seconds.push_back(seconds[id]);
  }
}

ComputeTime as_measured(std::vector<OpCost> costs) {
  return [costs = std::move(costs)](const RunPlan& plan, const Op& op) {
    const auto cost = std::ranges::find_if(
        costs, [&](const OpCost& each) { return is_of(each, plan.architecture, op); });
    if (cost == costs.end()) return 0.0;
    const double sum = std::accumulate(cost->seconds.begin(), cost->seconds.end(), 0.0);
    return sum / double(cost->seconds.size()) * touched_bytes(plan.step.program, op) / cost->bytes;
  };
}

StepTime time_step(const RunPlan& plan, const std::vector<OpTraffic>& traffic,
                   const ComputeTime& compute, const RankCores& cores,
                   const OffloadSpeed& offload) {
  const StepProgram& program = plan.step.program;
  std::vector<double> durations(program.ops.size());
  for (const OpTraffic& op : traffic) durations[size_t(op.op)] = op.plan.predicted_seconds;
  std::array<double, kLaneCount> busy{};
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.lane == Lane::kCompute) durations[id] = compute(plan, op);
    if (op.lane == Lane::kOffload) durations[id] = offload_seconds(program, op, offload);
    busy[size_t(op.lane)] += durations[id];
  }
  StepTime time = LaneTimeline(program, durations, cores).run();
  time.compute_seconds = busy[size_t(Lane::kCompute)];
  time.comm_seconds = busy[size_t(Lane::kComm)];
  time.offload_seconds = busy[size_t(Lane::kOffload)];
  time.exposed_seconds = time.seconds - time.compute_seconds;
  return time;
}

}  // namespace gxp
