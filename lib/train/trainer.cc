#include "lib/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/collective/communicator.h"
#include "lib/optim/lr_schedule.h"
#include "lib/zero/gradients.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;

bool repeats(const Op& op) { return row_of(op.kind).steps == OpSteps::kRepeats; }

int count_hosts(const Communicator& communicator) {
  const std::span<const int> hosts = communicator.hosts();
  return hosts.empty() ? 1 : *std::ranges::max_element(hosts) + 1;
}

// What a step took, from the construction to finish().
class StepMeter {
 public:
  explicit StepMeter(const Communicator& communicator)
      : communicator_(communicator),
        sent_(communicator.counters().bytes_sent),
        sent_between_hosts_(communicator.bytes_sent_between_hosts()) {}

  void finish(RunningStep& step, const ProgramRunner& runner) const {
    const auto seconds_from = [end = Clock::now()](Clock::time_point begin) {
      return std::chrono::duration<double>(end - begin).count();
    };
    StepResult& result = step.result;
    result.seconds = seconds_from(start_);
    result.update_seconds = seconds_from(step.clipped_at);
    result.comm_seconds = runner.busy_seconds(Lane::kComm);
    result.offload_seconds = runner.busy_seconds(Lane::kOffload);
    result.wire_bytes = communicator_.counters().bytes_sent - sent_;
    result.wire_bytes_between_hosts =
        communicator_.bytes_sent_between_hosts() - sent_between_hosts_;
  }

 private:
  Clock::time_point start_ = Clock::now();
  const Communicator& communicator_;
  uint64_t sent_;
  uint64_t sent_between_hosts_;
};

}  // namespace

Trainer::Trainer(const RunConfig& config, Communicator& communicator, Backend& backend,
                 RunData data)
    : config_(with_data(config, data)),
      backend_(backend),
      plan_(plan_run(config_, {communicator.world_size(), count_hosts(communicator)})),
      data_(std::move(data)),
      train_data_(data_.train->fingerprints()),
      order_(config_.data, config_.train.seed, *data_.train),
      model_(config_, plan_, communicator, backend),
      forward_backward_(config_, backend, model_.sharded, running_, *data_.train),
      clipping_(config_, backend, model_.sharded, running_),
      update_(config_, backend, model_.sharded, model_.parameters, running_),
      runner_(*backend.lanes, plan_.step.program, model_.sharded.memory,
              [this](const Op& op) { return bind(op); }) {}

// The part that carries out an operation.
std::function<void()> Trainer::bind(const Op& op) {
  switch (row_of(op.kind).part) {
    case OpPart::kForwardBackward:
      return forward_backward_.bind(op);
    case OpPart::kParameters:
      return model_.parameters.bind(op);
    case OpPart::kGradients:
      return bind_gradients(model_.sharded,
                            op.lane == Lane::kComm ? *backend_.comm_ops : *backend_.ops, op);
    case OpPart::kClipping:
      return clipping_.bind(op);
    case OpPart::kWeightUpdate:
      return update_.bind(op);
    case OpPart::kOffload:
      return bind_offload(op);
    case OpPart::kEvaluation:
      break;  // of other programs: forward_pass.h
  }
  GXP_ASSERT(false);
  return {};
}

// A skipped step changes nothing, so it stores nothing. It fetches all the same: fetches may run
// before the step is known to be skipped.
std::function<void()> Trainer::bind_offload(const Op& op) {
  uint64_t bytes = 0;
  for (const Move& move : op.moves) bytes += move.bytes;
  return [this, bytes, stores = op.kind == OpKind::kStore,
          copy = model_.sharded.offloaded.bind(op, plan_.step.program, model_.sharded.memory)] {
    if (stores && running_.result.skipped) return;
    copy();
    running_.result.offload_bytes += bytes;
  };
}

void Trainer::record_graphs(WithoutRecording otherwise) { runner_.repeat(repeats, otherwise); }

void Trainer::continue_from(int64_t steps, uint64_t samples) {
  model_.sharded.steps = steps;
  samples_ = samples;
  forward_backward_.continue_from(samples);
}

uint64_t Trainer::samples_per_step() const {
  const StepShape& shape = plan_.shape;
  return uint64_t{shape.rows} * uint64_t(shape.grad_accum) * uint64_t(shape.world_size);
}

StepResult Trainer::step(bool requests_stop) {
  model_.parameters.publish_frozen();
  const StepMeter meter(model_.sharded.calls.world());
  const uint64_t samples = samples_per_step();
  StepResult& result = running_.result;
  result = StepResult{.step = model_.sharded.steps + 1,
                      .loss_scale = clipping_.loss_scale(),
                      .tokens = samples * positions()};
  running_.requests_stop = requests_stop;
  running_.update = result.step - clipping_.steps_skipped();
  result.lr =
      learning_rate(config_.lr_schedule, config_.optim.lr, running_.update, config_.train.steps);
  runner_.run(Deadline::after(kComputeTimeout));
  ++model_.sharded.steps;
  samples_ += samples;
  meter.finish(running_, runner_);
  return result;
}

}  // namespace gxp
