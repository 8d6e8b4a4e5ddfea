#include "lib/train/trainer.h"

#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "lib/model/initialise.h"
#include "lib/optim/lr_schedule.h"
#include "lib/optim/optimizer.h"
#include "lib/shard/layout.h"
#include "lib/train/batch_place.h"
#include "lib/train/weights_file.h"
#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;

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
      plan_(plan_run(config, communicator.world_size())),
      groups_(groups_of(plan_.shape)),
      model_(make_model(plan_.architecture, *backend.ops)),
      data_(open_data(config, plan_.shape, false)),
      valid_(open_data(config, plan_.shape, true)),
      optimizer_(make_optimizer({*backend.device, compute(), *backend.ops}, config.optim)),
      rounding_(*backend.ops, config.train),
      host_rounding_(backend.on_host(), config.train),
      calls_(*backend.device, (*backend.lanes)[Lane::kComm]) {
  const SampleOrder order(config.data.order, config.train.seed, data_->sample_count());
  const BatchShare share{.rank = communicator.rank(),
                         .world_size = communicator.world_size(),
                         .rows = config.train.micro_batch,
                         .in_a_row = plan_.shape.add_in_pairs ? plan_.shape.grad_accum : 1};
  loader_ = std::make_unique<BatchLoader>(*data_, order, share);
  loader_->start(0);
  if (config.train.precision == "fp16") scaler_.emplace(config.fp16);
  const int rank = communicator.rank();
  if (groups_.replicas() > 1) {
    shard_group_ = communicator.split(groups_.group_of(rank), rank);
    replica_group_ = communicator.split(groups_.shard_of(rank, groups_.shard_size), rank);
  }
  for (int part = 0; part < plan_.shape.norm_parts; ++part)
    norm_parts_.push_back(trainable_parts(plan_.architecture,
                                          make_parts(plan_.layout, plan_.shape.norm_parts, part)));
  const int shards = plan_.step.program.optimizer_shards;
  own_parts_ = make_parts(plan_.layout, shards, groups_.shard_of(rank, shards));
  stale_ = plan_.step.program.parameter_shards != shards;
  all_parts_ = make_parts(plan_.layout, 1, 0);
  for (const KeptState& kept : plan_.shape.optimizer.kept) {
    const auto& parts = kept.everywhere ? all_parts_ : own_parts_;
    kept_places_.push_back(place_state(plan_.architecture, plan_.layout, kept, parts, shards));
  }
  memory_ = std::make_unique<ProgramMemory>(*backend.device, plan_.step.program);
  const FileStoreOptions file{config.offload.path, fmt::format("rank {}'s state", rank),
                              config.offload.io};
  offloaded_ = std::make_unique<OffloadedMemory>(plan_.step.program, *memory_, file,
                                                 *backend.device, (*backend.lanes)[Lane::kOffload]);
  loss_sum_ = Mirror(*backend.device, flat(plan_.step.program.loss_sum));
  norm_sums_ = Mirror(*backend.device, flat(plan_.step.program.norm_parts));
  all_losses_ = backend.device->allocate_host(sizeof(float) * size_t(plan_.shape.grad_accum) *
                                              plan_.shape.rows * plan_.shape.positions);
  runner_ = std::make_unique<ProgramRunner>(*backend.lanes, plan_.step.program, *memory_,
                                            [this](const Op& op) { return bind_train(op); });
}

Trainer::~Trainer() = default;

Memory Trainer::flat(BufferId buffer) const { return memory_->of(buffer); }

Stream& Trainer::compute() const { return (*backend_.lanes)[Lane::kCompute]; }
void Trainer::finish_compute() const { compute().finish(Deadline::after(kComputeTimeout)); }

Communicator& Trainer::members(RankGroup group) {
  if (group == RankGroup::kShards && shard_group_) return *shard_group_;
  if (group == RankGroup::kReplicas) return *replica_group_;
  return communicator_;
}

// This rank's shard of a flat wrap that is cut into `shards` equal parts.
Tensor Trainer::own_part(const Tensor& wrap, int shards) const {
  const size_t count = wrap.count() / size_t(shards);
  return wrap.rows(count * size_t(groups_.shard_of(communicator_.rank(), shards)), count);
}

uint64_t Trainer::tokens_per_step() const {
  return uint64_t{plan_.shape.rows} * plan_.shape.positions * uint64_t(plan_.shape.grad_accum) *
         uint64_t(plan_.shape.world_size);
}

void Trainer::initialise_weights() {
  if (config_.model.init != "normal") {
    load_weights(config_.model.init, *this);
    return;
  }
  const InitialisationKey key{config_.train.seed, config_.model.layers};
  fill_weights([&](const StateTensor& tensor, const Tensor& weight) {
    initialise(weight, tensor.elements.begin, *tensor.spec, key, *backend_.pool);
  });
}

void Trainer::continue_from(int64_t steps, uint64_t samples) {
  step_ = steps;
  samples_ = samples;
  loader_->start(samples);
}

KeyValues Trainer::scaling() const {
  if (!scaler_) return {};
  const LossScalerState& state = scaler_->state();
  return {{"fp16.scale", fmt::format("{}", state.scale)},
          {"fp16.steps", std::to_string(state.steps)},
          {"fp16.last_overflow", std::to_string(state.last_overflow)},
          {"fp16.hysteresis_left", std::to_string(state.hysteresis)},
          {"fp16.skipped_steps", std::to_string(skipped_)}};
}

void Trainer::continue_scaling(const KeyValues& saved) {
  const auto whole = [&](const char* key, int64_t missing) {
    const std::optional<std::string> text = find_value(saved, key);
    return text ? std::stoll(*text) : missing;
  };
  skipped_ = whole("fp16.skipped_steps", 0);
  const std::optional<std::string> scale = find_value(saved, "fp16.scale");
  if (!scaler_ || !scale) return;
  scaler_.emplace(config_.fp16,
                  LossScalerState{.scale = std::stod(*scale),
                                  .steps = whole("fp16.steps", 0),
                                  .last_overflow = whole("fp16.last_overflow", -1),
                                  .hysteresis = int(whole("fp16.hysteresis_left", 1))});
}

StepResult Trainer::step(bool wish_to_stop) {
  const auto start = Clock::now();
  const uint64_t sent_before = communicator_.counters().bytes_sent;
  const uint64_t between_before = communicator_.bytes_sent_between_hosts();
  result_ = StepResult{.step = step_ + 1, .tokens = tokens_per_step()};
  result_.lr = learning_rate(config_.lr_schedule, config_.optim.lr, result_.step - skipped_,
                             config_.train.steps);
  if (scaler_) result_.loss_scale = scaler_->scale();
  wish_to_stop_ = wish_to_stop;
  if (unrounded_) round_offloaded();
  runner_->run(Deadline::after(kComputeTimeout));
  ++step_;
  samples_ += tokens_per_step() / plan_.shape.positions;
  result_.wire_bytes = communicator_.counters().bytes_sent - sent_before;
  result_.comm_seconds = runner_->busy_seconds(Lane::kComm);
  result_.offload_seconds = runner_->busy_seconds(Lane::kOffload);
  result_.wire_bytes_between_hosts = communicator_.bytes_sent_between_hosts() - between_before;
  const auto end = Clock::now();
  result_.seconds = std::chrono::duration<double>(end - start).count();
  result_.update_seconds = std::chrono::duration<double>(end - clipped_at_).count();
  return result_;
}

double Trainer::largest(double value) {
  std::array<double, 1> largest = {value};
  communicator_.all_reduce(memory_of(largest), DType::kF64, ReduceOp::kMax);
  return largest[0];
}

// The kinds of operations that start the same kernels with the same arguments in every step, and do
// nothing else. The others are next-batch and losses, which copy and wait (and fp16's loss scale
// changes); rounding, whose random bits are a step's, and updates, whose learning rate is;
// clipping, which decides on the host; communication and offloading, which wait for others.
void Trainer::record_graphs() {
  runner_->repeat([](const Op& op) {
    switch (op.kind) {
      case OpKind::kForward:
      case OpKind::kRecompute:
      case OpKind::kBackward:
      case OpKind::kAddGradients:
      case OpKind::kMeasureGradients:
        return true;
      default:
        return false;
    }
  });
}

std::function<void()> Trainer::bind_train(const Op& op) {
  if (op.kind == OpKind::kNextBatch) return bind_next_batch(op);
  if (op.kind == OpKind::kUpdate) return bind_update(op);
  if (op.lane == Lane::kOffload) return bind_offload(op);
  const bool on_unit = op.lane == Lane::kCompute && op.unit >= 0;
  if (!on_unit) {
    return [this, op] { run_op(op, {}); };
  }
  const BindingContext context{plan_.architecture, plan_.layout, *memory_, plan_.shape.rows,
                               plan_.shape.positions};
  return [this, op, tensors = bind_unit(context, op)] { run_op(op, tensors); };
}

std::function<void()> Trainer::bind_next_batch(const Op& op) {
  // Owned by the function, which can be copied.
  const auto place = std::make_shared<BatchPlace>(*backend_.device, flat(op.buffers.tokens),
                                                  flat(op.buffers.targets),
                                                  Shape{plan_.shape.rows, plan_.shape.positions});
  return [this, place] {
    loader_->next(place->tokens(), place->targets(), Deadline::after(kDataTimeout));
    place->send(compute());
  };
}

void Trainer::run_op(const Op& op, const UnitTensors& tensors) {
  switch (op.kind) {
    case OpKind::kForward:
      model_->forward(op.unit, tensors);
      break;
    case OpKind::kLoss:
      model_->loss(tensors, float(result_.loss_scale / double(tokens_per_step())),
                   op.gradients.accumulate);
      finish_loss(op, tensors);
      break;
    case OpKind::kRecompute:
      model_->recompute(tensors, op.buffers.recompute);
      break;
    case OpKind::kBackward:
      model_->backward(op.unit, tensors, op.gradients.accumulate);
      break;
    case OpKind::kAddGradients:
      add_gradients(op);
      break;
    case OpKind::kRoundParameters:
      round_parameters(op.wrap);
      break;
    case OpKind::kMeasureGradients:
      measure();
      break;
    case OpKind::kClipGradients:
      clip();
      break;
    case OpKind::kPrepareUpdate:
      prepare_update(op);
      break;
    case OpKind::kUpdateWhole:
      update_whole(op);
      break;
    default:
      run_comm(op);
  }
}

void Trainer::run_comm(const Op& op) {
  const StepProgram& program = plan_.step.program;
  switch (op.kind) {
    case OpKind::kGatherParameters:
      return gather(program, *memory_, op);
    case OpKind::kReduceGradients:
      return op.wrap >= 0 ? scatter_gradients(op) : reduce_bucket(op);
    case OpKind::kReduceLoss:
      return calls_.all_reduce(communicator_, flat(program.loss_sum), DType::kF64, ReduceOp::kSum);
    case OpKind::kGatherDirections:
      return gather_directions(op);
    case OpKind::kGatherNorm:
      return calls_.all_gather(communicator_, flat(program.norm_parts), DType::kF64);
    default:
      GXP_ASSERT(false);
  }
}

// A wrap's parameters, from the shards that lie apart, or in place from their owners.
void Trainer::gather(const StepProgram& program, const ProgramMemory& memory, const Op& op) {
  Communicator& group = members(op.collective.group);
  const int shards = program.parameter_shards;
  const auto find_shard = [&] {
    if (shards == 1)
      return own_part(tensor_of_wrap(plan_.layout, memory, op.wrap, op.parameters.own),
                      groups_.shard_size)
          .memory;
    const size_t count = plan_.layout.wraps[size_t(op.wrap)].flat.count / size_t(shards);
    if (op.parameters.shard.buffer != kNoBuffer)
      return memory.tensor(op.parameters.shard.buffer)
          .rows(op.parameters.shard.begin, count)
          .memory;
    return shard_of_wrap(plan_.layout, memory.tensor(program.parameters), op.wrap, shards).memory;
  };
  const Memory shard = find_shard();
  if (op.collective.group == RankGroup::kReplicas)
    return calls_.all_gather(group, shard, plan_.architecture.compute);
  const Tensor whole = tensor_of_wrap(plan_.layout, memory, op.wrap, op.parameters.own);
  if (shards == 1) return calls_.all_gather(group, whole.memory, whole.dtype);
  const Call call{
      .collective = Collective::kAllGather, .dtype = whole.dtype, .count = whole.count()};
  calls_.run(group, call, shard, whole.memory);
}

// For passes between steps.
void Trainer::publish_parameters() {
  if (unrounded_) round_offloaded();
  for (const Op& op : plan_.step.program.ops) {
    if (op.kind == OpKind::kRoundParameters) round_parameters(op.wrap);
    if (!stale_ || !op.parameters.publishes) continue;
    finish_compute();  // what the comm lane sends
    gather(plan_.step.program, *memory_, op);
  }
  finish_compute();
  stale_ = false;
}

// On the host, of a micro-batch.
Tensor Trainer::losses_of(int micro) const {
  const size_t count = plan_.shape.rows * plan_.shape.positions;
  const size_t bytes = count * sizeof(float);
  return {all_losses_.memory().slice(size_t(micro) * bytes, bytes), DType::kF32, Shape{count}};
}

// After the last micro-batch the losses of all are added, in the order of their gradients. The wish
// to stop travels with them, so that all ranks stop after the same step.
void Trainer::finish_loss(const Op& op, const UnitTensors& tensors) {
  compute().copy(losses_of(op.micro).memory, tensors.losses.memory);
  if (op.micro + 1 < plan_.shape.grad_accum) return;
  finish_compute();
  std::vector<double> waiting;  // sums that wait for others
  for (int micro = 0; micro < plan_.shape.grad_accum; ++micro) {
    waiting.push_back(backend_.on_host().sum(losses_of(micro)));
    const int completed = plan_.shape.add_in_pairs ? sums_completed(micro) : int(micro > 0);
    for (int i = 0; i < completed; ++i) {
      const double newest = waiting.back();
      waiting.pop_back();
      waiting.back() += newest;
    }
  }
  auto* sums = reinterpret_cast<double*>(loss_sum_.host().data);
  sums[0] = waiting.front();
  sums[1] = wish_to_stop_ ? 1 : 0;
  loss_sum_.send(compute());
}

}  // namespace gxp
