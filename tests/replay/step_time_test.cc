#include "lib/replay/step_time.h"

#include <numeric>

#include "tests/catch.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

constexpr Speed kSpeed{.flops = 1e10, .bytes_per_s = 1e10};

struct Timed {
  RunPlan plan;
  StepTime time;
};

Timed time_of(const std::string& strategy, int world_size, Speed speed = kSpeed) {
  Timed timed;
  timed.plan = plan_run(small_run({"parallel.strategy=" + strategy}), world_size);
  const auto traffic = traffic_of(timed.plan.step.program, network_of("shm", world_size));
  timed.time = time_step(timed.plan, traffic, at_speed(speed));
  return timed;
}

TEST_CASE("a step on one rank takes the time of its operations, none of it exposed", "[replay]") {
  const StepTime time = time_of("zero3", 1).time;
  CHECK(time.comm_seconds == 0);
  CHECK(time.seconds == Approx(time.compute_seconds));
  CHECK(time.exposed_seconds == Approx(0).margin(1e-12));
}

TEST_CASE("operations of a lane do not overlap, and begin after what they wait for", "[replay]") {
  const std::string strategy = GENERATE("ddp", "zero1", "zero3");
  const auto [plan, time] = time_of(strategy, 4);
  std::array<double, kLaneCount> lane_free{};
  for (size_t id = 0; id < time.ops.size(); ++id) {
    const Op& op = plan.step.program.ops[id];
    CHECK(time.ops[id].begin >= lane_free[size_t(op.lane)]);
    for (const OpId before : op.after) CHECK(time.ops[id].begin >= time.ops[size_t(before)].end);
    lane_free[size_t(op.lane)] = time.ops[id].end;
  }
}

TEST_CASE("offload takes the time of its bytes, and is exposed where it is slow", "[replay]") {
  const RunPlan plan = plan_run(
      small_run({"offload.optimizer=file", "offload.path=unused", "offload.step_tile=2048"}), 1);
  const StepTime slow = time_step(plan, {}, at_speed(kSpeed), {}, {.file_bytes_per_s = 1e6});
  const StepTime fast = time_step(plan, {}, at_speed(kSpeed), {}, {.file_bytes_per_s = 1e15});
  const auto bytes = plan.step.program.offloaded_bytes[size_t(Storage::kFile)];
  CHECK(slow.offload_seconds == Approx(2 * double(bytes) / 1e6).epsilon(0.01));
  CHECK(slow.exposed_seconds > 0.9 * slow.offload_seconds);
  CHECK(fast.exposed_seconds < 0.01 * fast.seconds);
  CHECK(slow.compute_seconds == Approx(fast.compute_seconds));
}

TEST_CASE("the arithmetic of a step is the architecture's count", "[replay]") {
  const RunPlan plan = plan_run(small_run({"train.grad_accum=2"}), 1);
  double flops = 0;
  for (const Op& op : plan.step.program.ops) flops += flops_of(plan, op);
  const double tokens = 2.0 * double(plan.shape.rows * plan.shape.positions);
  CHECK(flops / tokens ==
        Approx(plan.architecture.train_flops_per_token(plan.shape.positions)).epsilon(0.001));
}

TEST_CASE("recomputation costs a block's forward without its last product", "[replay]") {
  const std::string recompute = GENERATE("selective", "full");
  const RunPlan plan = plan_run(small_run({"model.layers=3", "train.recompute=" + recompute}), 1);
  const double c = plan.architecture.config.hidden;
  const auto positions = double(plan.shape.positions);
  // Two norms, the projections to queries, keys and values and from attention, into the MLP.
  double per_token = 2 * (4 * c + (3 * c * c + 3 * c) + (c * c + c) + (4 * c * c + 4 * c));
  if (recompute == "full") per_token += 2 * c * positions;
  int found = 0;
  for (const Op& op : plan.step.program.ops) {
    if (op.kind != OpKind::kRecompute) continue;
    CHECK(flops_of(plan, op) == Approx(per_token * double(plan.shape.rows) * positions));
    ++found;
  }
  CHECK(found == 2 * plan.shape.grad_accum);
}

TEST_CASE("communication that a slow machine hides is exposed on a fast one", "[replay]") {
  const StepTime slow = time_of("zero3", 4, {.flops = 1e7, .bytes_per_s = 1e7}).time;
  const StepTime fast = time_of("zero3", 4, {.flops = 1e15, .bytes_per_s = 1e15}).time;
  CHECK(slow.exposed_seconds < 0.1 * slow.seconds);
  CHECK(fast.exposed_seconds > 0.9 * fast.seconds);
  CHECK(fast.seconds >= fast.comm_seconds);
}

// As if every operation of the compute lane took a millisecond.
double one_millisecond(const RunPlan&, const Op&) { return 1e-3; }

TEST_CASE("lanes that share too few cores take turns", "[replay]") {
  const RunPlan plan = plan_run(small_run({"parallel.strategy=zero3"}), 4);
  auto traffic = traffic_of(plan.step.program, network_of("shm", 4));
  for (OpTraffic& op : traffic) op.plan.predicted_seconds = 1e-3;
  const StepTime apart = time_step(plan, traffic, one_millisecond);
  const StepTime together = time_step(plan, traffic, one_millisecond, {.cores = 1});
  const StepTime enough = time_step(plan, traffic, one_millisecond, {.cores = 2});
  CHECK(apart.seconds < 0.95 * (apart.compute_seconds + apart.comm_seconds));
  CHECK(together.seconds == Approx(together.compute_seconds + together.comm_seconds));
  CHECK(enough.seconds == apart.seconds);
}

TEST_CASE("measured operations predict the step that they were measured in, and others by bytes",
          "[replay]") {
  const RunPlan plan = plan_run(small_run({"train.grad_accum=2"}), 1);
  std::vector<double> seconds(plan.step.program.ops.size());
  for (size_t id = 0; id < seconds.size(); ++id)
    seconds[id] = 1e-3 * double(1 + int(plan.step.program.ops[id].kind));
  std::vector<OpCost> costs;
  add_costs(costs, plan.architecture, plan.step.program, seconds);
  const StepTime same = time_step(plan, {}, as_measured(costs));
  CHECK(same.seconds == Approx(std::accumulate(seconds.begin(), seconds.end(), 0.0)));

  const RunPlan sharded = plan_run(small_run({"parallel.strategy=zero1"}), 4);
  const auto update = [](const RunPlan& of) {
    return *std::ranges::find(of.step.program.ops, OpKind::kUpdate, &Op::kind);
  };
  const ComputeTime time = as_measured(costs);
  CHECK(time(sharded, update(sharded)) < 0.5 * time(plan, update(plan)));
}

}  // namespace
}  // namespace gxp
