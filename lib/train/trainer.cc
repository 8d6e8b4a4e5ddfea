#include "lib/train/trainer.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "lib/model/initialise.h"
#include "lib/optim/adamw.h"
#include "lib/optim/clip.h"
#include "lib/optim/lr_schedule.h"
#include "lib/train/weights_file.h"
#include "lib/zero/flat_tensors.h"
#include "lib/zero/gradients.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;

// Reading ahead keeps up or has failed; a disk that hangs longer than this is broken.
constexpr auto kDataTimeout = std::chrono::seconds(300);
// Waits inside a step have their own, shorter deadlines (comm.timeout_s, kDataTimeout); this bounds
// the arithmetic between them.
constexpr auto kStepTimeout = std::chrono::hours(24);

StepShape make_shape(const RunConfig& config, int world_size) {
  const int sequence = config.data.sequence > 0 ? config.data.sequence : config.model.context;
  return {.rows = size_t(config.train.micro_batch),
          .positions = size_t(sequence),
          .grad_accum = config.train.grad_accum,
          .world_size = world_size,
          .bucket_bytes = config.parallel.bucket_bytes};
}

std::unique_ptr<Dataset> open_data(const RunConfig& config, const StepShape& shape, bool valid) {
  const std::vector<std::string>& paths = valid ? config.data.valid : config.data.train;
  if (valid && paths.empty()) return nullptr;
  return std::make_unique<Dataset>(paths, int(shape.positions), config.model.vocab_size,
                                   valid ? "data.valid" : "data.train");
}

}  // namespace

Trainer::Trainer(const RunConfig& config, Communicator& communicator, Backend& backend)
    : config_(config),
      communicator_(communicator),
      backend_(backend),
      architecture_(make_architecture(config.model)),
      layout_(make_layout(architecture_, communicator.world_size())),
      shape_(make_shape(config, communicator.world_size())),
      model_(make_model(architecture_, *backend.ops)),
      data_(open_data(config, shape_, false)),
      valid_(open_data(config, shape_, true)) {
  const SampleOrder order(config.data.order, config.train.seed, data_->sample_count());
  const BatchShare share{communicator.rank(), communicator.world_size(), config.train.micro_batch};
  loader_ = std::make_unique<BatchLoader>(*data_, order, share);
  loader_->start(0);
  built_ =
      build_train_step(architecture_, layout_, find_strategy(config.parallel.strategy), shape_);
  memory_ = std::make_unique<ProgramMemory>(*backend.device, built_.program);
  runner_ = std::make_unique<ProgramRunner>(*backend.device, built_.program, *memory_,
                                            [this](const Op& op) { return bind_train(op); });
}

Trainer::~Trainer() = default;

Memory Trainer::flat(BufferId buffer) const { return memory_->of(buffer); }

uint64_t Trainer::tokens_per_step() const {
  return uint64_t{shape_.rows} * shape_.positions * uint64_t(shape_.grad_accum) *
         uint64_t(shape_.world_size);
}

void Trainer::initialise_weights() {
  if (config_.model.init != "normal") {
    load_weights(config_.model.init, state());
    return;
  }
  for (const StateTensor& tensor : state()) {
    initialise(tensor.weight, *tensor.spec, config_.train.seed, config_.model.layers,
               *backend_.pool);
  }
}

std::vector<StateTensor> Trainer::state() {
  const StepProgram& program = built_.program;
  const std::vector<Tensor> weights = all_tensors(architecture_, layout_, flat(program.parameters));
  const std::vector<Tensor> first =
      all_tensors(architecture_, layout_, flat(program.first_moments));
  const std::vector<Tensor> second =
      all_tensors(architecture_, layout_, flat(program.second_moments));
  std::vector<StateTensor> tensors;
  for (const UnitSpec& unit : architecture_.units) {
    for (const TensorSpec& spec : unit.tensors) {
      const size_t i = tensors.size();
      tensors.push_back({&spec, weights[i], first[i], second[i]});
    }
  }
  return tensors;
}

std::vector<Tensor> Trainer::gradients() {
  return all_tensors(architecture_, layout_, flat(built_.program.gradients));
}

void Trainer::continue_from(int64_t steps, uint64_t samples) {
  step_ = steps;
  samples_ = samples;
  loader_->start(samples);
}

StepResult Trainer::step(bool wish_to_stop) {
  const auto start = Clock::now();
  const uint64_t sent_before = communicator_.counters().bytes_sent;
  result_ = StepResult{.step = step_ + 1, .tokens = tokens_per_step()};
  result_.lr =
      learning_rate(config_.lr_schedule, config_.optim.lr, result_.step, config_.train.steps);
  wish_to_stop_ = wish_to_stop;
  runner_->run(Deadline::after(kStepTimeout));
  ++step_;
  samples_ += tokens_per_step() / shape_.positions;
  result_.wire_bytes = communicator_.counters().bytes_sent - sent_before;
  result_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result_;
}

double Trainer::largest(double value) {
  std::array<double, 1> largest = {value};
  communicator_.all_reduce(memory_of(largest), DType::kF64, ReduceOp::kMax);
  return largest[0];
}

std::function<void()> Trainer::bind_train(const Op& op) {
  if (op.unit < 0) {
    return [this, op] { run_op(op, {}); };
  }
  const BindingContext context{architecture_, layout_,     built_.program,
                               *memory_,      shape_.rows, shape_.positions};
  return [this, op, tensors = bind_unit(context, op)] { run_op(op, tensors); };
}

void Trainer::run_op(const Op& op, const UnitTensors& tensors) {
  const bool accumulate = op.micro > 0;
  const auto start = Clock::now();
  switch (op.kind) {
    case OpKind::kNextBatch: {
      const Shape shape = {shape_.rows, shape_.positions};
      loader_->next({flat(op.tokens), DType::kI32, shape}, {flat(op.targets), DType::kI32, shape},
                    Deadline::after(kDataTimeout));
      break;
    }
    case OpKind::kForward:
      model_->forward(op.unit, tensors);
      break;
    case OpKind::kLoss:
      model_->loss(tensors, float(1.0 / double(tokens_per_step())), accumulate);
      finish_loss(op, tensors);
      break;
    case OpKind::kBackward:
      model_->backward(op.unit, tensors, accumulate);
      break;
    case OpKind::kReduceGradients:
      reduce_bucket(communicator_, flat(built_.program.gradients),
                    built_.buckets[size_t(op.bucket)]);
      break;
    case OpKind::kReduceLoss:
      communicator_.all_reduce(flat(built_.program.loss_sum), DType::kF64, ReduceOp::kSum);
      break;
    case OpKind::kClipGradients:
      clip();
      break;
    case OpKind::kUpdate:
      update();
      break;
    case OpKind::kEvaluateLoss:
    case OpKind::kLogits:
      GXP_ASSERT(false);
  }
  if (op.lane == Lane::kComm)
    result_.comm_seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

// Adds a micro-batch's losses to the step's. The wish to stop travels with them, so that all ranks
// stop after the same step.
void Trainer::finish_loss(const Op& op, const UnitTensors& tensors) {
  auto* sums = reinterpret_cast<double*>(flat(built_.program.loss_sum).data);
  const double loss = backend_.ops->sum(tensors.losses);
  sums[0] = op.micro == 0 ? loss : sums[0] + loss;
  sums[1] = wish_to_stop_ ? 1 : 0;
}

void Trainer::clip() {
  const auto* sums = reinterpret_cast<const double*>(flat(built_.program.loss_sum).data);
  const Memory gradients = flat(built_.program.gradients);
  result_.loss = sums[0] / double(tokens_per_step());
  result_.stop_wished = sums[1] > 0;
  result_.grad_norm = gradient_norm(*backend_.ops, architecture_, layout_, gradients);
  clip_coefficient_ = clip_coefficient(result_.grad_norm, config_.optim.clip);
  if (std::isfinite(result_.loss) && std::isfinite(result_.grad_norm)) return;
  const auto unsigned_nan = [](double x) { return std::isnan(x) ? std::fabs(x) : x; };
  const std::string tensor = first_non_finite(*backend_.ops, architecture_, layout_, gradients);
  fail(ErrorKind::kMismatch,
       "step {}: the loss is {} and the gradient norm {} (first non-finite gradient: {}); the "
       "weights are those of step {}; try a lower optim.lr, a longer lr_schedule.warmup_steps or a "
       "smaller "
       "optim.clip",
       result_.step, unsigned_nan(result_.loss), unsigned_nan(result_.grad_norm),
       tensor.empty() ? "none" : tensor, step_);
}

void Trainer::update() {
  AdamW adamw(*backend_.ops, config_.optim);
  const std::vector<Tensor> gradient = gradients();
  const std::vector<StateTensor> tensors = state();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StateTensor& t = tensors[i];
    const AdamWRange range{t.weight.memory, t.first_moment.memory, t.second_moment.memory,
                           gradient[i].memory, t.spec->decays()};
    adamw.update(range, result_.step, result_.lr, clip_coefficient_);
  }
}

}  // namespace gxp
