#include "lib/train/trainer.h"

#include <algorithm>
#include <chrono>

#include "lib/collective/communicator.h"
#include "lib/model/initialise.h"
#include "lib/optim/lr_schedule.h"
#include "lib/train/weights_file.h"
#include "lib/zero/gradients.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;

bool repeats(const Op& op) { return row_of(op.kind).steps == OpSteps::kRepeats; }

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

// Gradients on a GPU and in the host's memory do not meet in one call.
void require_one_kind(const Device& mine, Communicator& communicator) {
  std::vector<uint8_t> on_gpu(size_t(communicator.world_size()));
  on_gpu[size_t(communicator.rank())] = mine.space() != MemorySpace::kHost;
  communicator.all_gather(memory_of(on_gpu), DType::kU8);
  const auto other = std::ranges::find(on_gpu, 1 - on_gpu[0]);
  if (other == on_gpu.end()) return;
  const auto name = [](uint8_t is_gpu) { return is_gpu != 0 ? "a GPU" : "the CPU"; };
  fail(ErrorKind::kConfig,
       "start training: rank 0 computes on {}, rank {} on {}: let every rank see a GPU, or set "
       "train.device to \"cpu\"",
       name(on_gpu[0]), other - on_gpu.begin(), name(*other));
}

JoinedDevice join_device_of(Backend& backend, Communicator& communicator) {
  require_one_kind(*backend.device, communicator);
  if (backend.folds == nullptr) return {};
  return communicator.join_device({*backend.device, *backend.folds});
}

}  // namespace

Trainer::Trainer(const RunConfig& config, Communicator& communicator, Backend& backend)
    : config_(config),
      backend_(backend),
      plan_(plan_run(config, communicator.world_size())),
      data_(config.data.train, int(positions()), config.model.vocab_size, "data.train",
            config.data.tokenizer),
      train_data_(data_.fingerprints()),
      valid_(config.data.valid.empty()
                 ? nullptr
                 : std::make_unique<Dataset>(config.data.valid, int(positions()),
                                             config.model.vocab_size, "data.valid",
                                             config.data.tokenizer)),
      joined_(join_device_of(backend, communicator)),
      watch_(*backend.lanes, [&communicator] { communicator.check(); }),
      sharded_(plan_, communicator, *backend.lanes, config_.offload),
      parameters_(sharded_, *backend.ops, backend.on_host(), config_.train),
      forward_backward_(config_, backend, sharded_, running_, data_),
      clipping_(config_, backend, sharded_, running_),
      update_(config_, backend, sharded_, parameters_, running_),
      state_(sharded_, parameters_),
      evaluation_{config_, backend, sharded_, parameters_},
      runner_(*backend.lanes, plan_.step.program, sharded_.memory,
              [this](const Op& op) { return bind(op); }) {}

// The part that carries out an operation.
std::function<void()> Trainer::bind(const Op& op) {
  switch (row_of(op.kind).part) {
    case OpPart::kForwardBackward:
      return forward_backward_.bind(op);
    case OpPart::kParameters:
      return parameters_.bind(op);
    case OpPart::kGradients:
      return bind_gradients(sharded_, op.lane == Lane::kComm ? *backend_.comm_ops : *backend_.ops,
                            op);
    case OpPart::kClipping:
      return clipping_.bind(op);
    case OpPart::kWeightUpdate:
      return update_.bind(op);
    case OpPart::kOffload:
      return bind_offload(op);
    case OpPart::kEvaluation:
      break;  // of other programs: evaluation.h
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
          copy = sharded_.offloaded.bind(op, plan_.step.program, sharded_.memory)] {
    if (stores && running_.result.skipped) return;
    copy();
    running_.result.offload_bytes += bytes;
  };
}

void Trainer::record_graphs(WithoutRecording otherwise) { runner_.repeat(repeats, otherwise); }

void Trainer::initialise_weights() {
  const InitialisationKey key{config_.train.seed, config_.model.layers};
  const FillTensor random = [&](const HeldTensor& tensor, const Tensor& weight) {
    initialise(weight, tensor.elements.begin, *tensor.spec, key, *backend_.pool);
  };
  const FillTensor model =
      config_.model.init == "normal"
          ? random
          : weights_from(config_.model.init, config_.model, sharded_.rank == 0);
  const FillTensor adapters =
      config_.lora.init.empty() ? random : adapters_from(config_.lora.init, architecture());
  state_.fill_weights([&](const HeldTensor& tensor, const Tensor& weight) {
    (tensor.spec->adapter ? adapters : model)(tensor, weight);
  });
}

void Trainer::continue_from(int64_t steps, uint64_t samples) {
  sharded_.steps = steps;
  samples_ = samples;
  forward_backward_.continue_from(samples);
}

uint64_t Trainer::samples_per_step() const {
  const StepShape& shape = plan_.shape;
  return uint64_t{shape.rows} * uint64_t(shape.grad_accum) * uint64_t(shape.world_size);
}

StepResult Trainer::step(bool requests_stop) {
  const StepMeter meter(sharded_.calls.world());
  const uint64_t samples = samples_per_step();
  StepResult& result = running_.result;
  result = StepResult{.step = sharded_.steps + 1,
                      .loss_scale = clipping_.loss_scale(),
                      .tokens = samples * positions()};
  running_.requests_stop = requests_stop;
  running_.update = result.step - clipping_.steps_skipped();
  result.lr =
      learning_rate(config_.lr_schedule, config_.optim.lr, running_.update, config_.train.steps);
  runner_.run(Deadline::after(kComputeTimeout));
  ++sharded_.steps;
  samples_ += samples;
  meter.finish(running_, runner_);
  return result;
}

}  // namespace gxp
