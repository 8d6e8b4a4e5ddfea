#include "lib/train/step/forward_backward.h"

#include <vector>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/train/step/unit_binding.h"

namespace gxp {
namespace {

// Tells this use of the seed from the others.
constexpr uint64_t kDropout = 0x64726f706f7574;  // "dropout"

}  // namespace

ForwardBackward::ForwardBackward(const RunConfig& config, Backend& backend, ShardedMemory& sharded,
                                 RunningStep& step, const Dataset& data)
    : host_ops_(backend.on_host()),
      sharded_(sharded),
      step_(step),
      dropout_seed_(mix64(config.train.seed ^ kDropout)),
      first_tokens_(size_t(sharded.plan.shape.grad_accum)),
      model_(make_model(sharded.plan.architecture, *backend.ops)),
      loader_(data, DataOrder(config.data, config.train.seed, data),
              {.rank = sharded.rank,
               .world_size = sharded.groups.world_size,
               .rows = config.train.micro_batch,
               .in_a_row = sharded.plan.shape.add_in_pairs ? sharded.plan.shape.grad_accum : 1,
               .per_step = sharded.plan.shape.grad_accum,
               .documents = sharded.plan.shape.documents}),
      loss_sum_(*backend.device, sharded.memory.of(sharded.program.loss_sum)),
      all_losses_(backend.device->allocate_host(sizeof(float) * sharded.plan.shape.rows *
                                                sharded.plan.shape.positions *
                                                size_t(sharded.plan.shape.grad_accum))) {
  loader_.start(0);
}

std::function<void()> ForwardBackward::bind(const Op& op) {
  if (op.kind == OpKind::kNextBatch)
    return bind_next_batch(
        sharded_.lanes, sharded_.memory, sharded_.plan.shape, op,
        [this, micro = op.micro](const BatchTensors& batch) { next_batch(micro, batch); });
  if (op.kind == OpKind::kReduceLoss)
    return sharded_.calls.bind(RankGroup::kWorld, Collective::kAllReduce,
                               sharded_.tensor(sharded_.program.loss_sum));
  Model& model = *model_;
  UnitTensors t = bind_unit(sharded_.plan, sharded_.plan.shape, sharded_.memory, op);
  t.dropout = {mix64(dropout_seed_ + uint64_t(op.unit)), &first_tokens_[size_t(op.micro)]};
  if (op.kind == OpKind::kForward) return [&model, t, unit = op.unit] { model.forward(unit, t); };
  if (op.kind == OpKind::kRecompute)
    return [&model, t, unit = op.unit, what = op.buffers.recompute] {
      model.recompute(unit, t, what);
    };
  if (op.kind == OpKind::kBackward) return [&model, t, unit = op.unit] { model.backward(unit, t); };
  GXP_ASSERT(op.kind == OpKind::kLoss);
  return [this, t, micro = op.micro] { loss(micro, t); };
}

// Every rank counts the targets of all ranks' micro-batches, so all fail alike where there are none.
void ForwardBackward::next_batch(int micro, const BatchTensors& batch) {
  step_.notes_data(true);
  const uint64_t sample = loader_.next(batch, Deadline::after(kDataTimeout));
  step_.notes_data(false);
  first_tokens_[size_t(micro)] = sample * sharded_.plan.shape.positions;
  StepResult& result = step_.result;
  result.targets = loader_.step_targets();
  if (result.targets == 0)
    fail(ErrorKind::kCorrupt,
         "make step {}: none of its {} targets counts, since every label in its rows of data.train "
         "is {}; remove rows in which nothing counts, or raise train.grad_accum or "
         "train.micro_batch",
         result.step, result.tokens, kNoLabel);
}

void ForwardBackward::loss(int micro, const UnitTensors& tensors) {
  const StepResult& result = step_.result;
  model_->loss(tensors, float(result.loss_scale / double(result.targets)));
  sharded_.lanes[Lane::kCompute].copy(losses_of(micro).memory, tensors.losses.memory);
  if (micro + 1 == sharded_.plan.shape.grad_accum) send_loss();
}

// On the host, of a micro-batch.
Tensor ForwardBackward::losses_of(int micro) const {
  const StepShape& shape = sharded_.plan.shape;
  const Shape all = {size_t(shape.grad_accum), shape.rows * shape.positions};
  return Tensor(all_losses_.memory(), DType::kF32, all).rows(size_t(micro), 1);
}

// The micro-batches' losses are added in the order of their gradients. The request to stop travels
// with their sum, so that all ranks stop after the same step.
void ForwardBackward::send_loss() {
  Stream& compute = sharded_.lanes[Lane::kCompute];
  compute.finish(Deadline::after(kComputeTimeout));
  const StepShape& shape = sharded_.plan.shape;
  std::vector<double> waiting;  // sums that wait for others
  for (int micro = 0; micro < shape.grad_accum; ++micro) {
    waiting.push_back(host_ops_.sum(losses_of(micro)));
    const int completed = shape.add_in_pairs ? sums_completed(micro) : int(micro > 0);
    for (int i = 0; i < completed; ++i) {
      const double newest = waiting.back();
      waiting.pop_back();
      waiting.back() += newest;
    }
  }
  auto* sums = reinterpret_cast<double*>(loss_sum_.host().data);
  sums[0] = waiting.front();
  sums[1] = step_.requests_stop ? 1 : 0;
  loss_sum_.send(compute);
}

}  // namespace gxp
