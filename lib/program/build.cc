#include "lib/program/build.h"

#include <fmt/format.h>

#include "lib/base/error.h"

namespace gxp {
namespace {

// Emits operations in the order of the step; strategy decides what is emitted, not how it runs.
class ProgramBuilder {
 public:
  ProgramBuilder(const Architecture& architecture, const ParameterLayout& layout,
                 const StepShape& shape)
      : architecture_(architecture),
        layout_(layout),
        shape_(shape),
        tokens_(shape.rows * shape.positions) {
    program_.parameters =
        persistent("parameters", MemoryKind::kParameters, layout.count * sizeof(float));
  }

  // The buffers that only training has.
  void train_buffers() {
    const size_t bytes = layout_.count * sizeof(float);
    program_.gradients = persistent("gradients", MemoryKind::kGradients, bytes);
    program_.first_moments = persistent("first moments", MemoryKind::kOptimizer, bytes);
    program_.second_moments = persistent("second moments", MemoryKind::kOptimizer, bytes);
    program_.loss_sum = persistent("loss sum", MemoryKind::kCommunication, 2 * sizeof(double));
  }

  void next_batch(int micro) {
    batch_tokens_ = buffer("tokens", MemoryKind::kActivations, tokens_ * sizeof(int32_t));
    batch_targets_ = buffer("targets", MemoryKind::kActivations, tokens_ * sizeof(int32_t));
    Op& op = emit(OpKind::kNextBatch, Lane::kCompute, -1, micro);
    op.tokens = batch_tokens_;
    op.targets = batch_targets_;
    write(op, batch_tokens_);
    write(op, batch_targets_);
  }

  void forward(int unit, int micro) {
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(OpKind::kForward, Lane::kCompute, unit, micro);
    if (spec.kind == UnitKind::kEmbedding) {
      op.tokens = batch_tokens_;
      read(op, batch_tokens_);
    } else {
      op.input = stream_.at(size_t(unit) - 1);
      read(op, op.input);
    }
    op.output = buffer(fmt::format("stream after {}", spec.name), MemoryKind::kActivations,
                       tokens_ * size_t(architecture_.config.hidden) * sizeof(float));
    write(op, op.output);
    stream_.resize(size_t(unit));
    stream_.push_back(op.output);
    for (const ActivationSpec& saved : spec.saved)
      op.saved.push_back(make(spec, saved, MemoryKind::kActivations));
    for (const BufferId id : op.saved) write(op, id);
    saved_.resize(architecture_.units.size());
    saved_[size_t(unit)] = op.saved;
    scratch(op, spec, spec.forward_scratch);
    use_parameters(op, spec, unit);
  }

  // The head: forward and backward in one operation, so that logits need not be kept or made twice.
  void loss(int unit, int micro) {
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(OpKind::kLoss, Lane::kCompute, unit, micro);
    head_inputs(op, unit);
    stream_gradient_ = buffer("stream gradient", MemoryKind::kActivations,
                              tokens_ * size_t(architecture_.config.hidden) * sizeof(float));
    op.stream_gradient = stream_gradient_;
    write(op, stream_gradient_);
    scratch(op, spec, spec.backward_scratch);
    write(op, program_.loss_sum);
    use_parameters(op, spec, unit);
    use_gradients(op, spec, unit);
  }

  void evaluate(OpKind kind, int unit) {
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(kind, Lane::kCompute, unit, 0);
    head_inputs(op, unit);
    if (kind == OpKind::kLogits) {
      op.output = persistent("last logits", MemoryKind::kWorkspace,
                             shape_.rows * size_t(architecture_.config.vocab_size) * sizeof(float));
      write(op, op.output);
    }
    scratch(op, spec, spec.forward_scratch);
    use_parameters(op, spec, unit);
  }

  void backward(int unit, int micro) {
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(OpKind::kBackward, Lane::kCompute, unit, micro);
    op.stream_gradient = stream_gradient_;
    write(op, stream_gradient_);
    if (spec.kind == UnitKind::kEmbedding) {
      op.tokens = batch_tokens_;
      read(op, batch_tokens_);
    } else {
      op.input = stream_.at(size_t(unit) - 1);
      read(op, op.input);
    }
    op.saved = saved_.at(size_t(unit));
    for (const BufferId id : op.saved)
      write(op, id);  // backward may work in place in what it saved
    scratch(op, spec, spec.backward_scratch);
    use_parameters(op, spec, unit);
    use_gradients(op, spec, unit);
  }

  void reduce_gradients(int index, const Bucket& bucket) {
    Op& op = emit(OpKind::kReduceGradients, Lane::kComm, -1, -1);
    op.bucket = index;
    op.uses.push_back({program_.gradients, to_bytes(bucket.flat), true});
  }

  void reduce_loss() { write(emit(OpKind::kReduceLoss, Lane::kComm, -1, -1), program_.loss_sum); }

  void clip_gradients() {
    Op& op = emit(OpKind::kClipGradients, Lane::kCompute, -1, -1);
    read(op, program_.gradients);
    read(op, program_.loss_sum);
  }

  void update() {
    Op& op = emit(OpKind::kUpdate, Lane::kCompute, -1, -1);
    read(op, program_.gradients);
    for (const BufferId id : {program_.parameters, program_.first_moments, program_.second_moments})
      write(op, id);
  }

  StepProgram finish() && {
    place_buffers(program_);
    derive_order(program_);
    return std::move(program_);
  }

 private:
  Op& emit(OpKind kind, Lane lane, int unit, int micro) {
    Op& op = program_.ops.emplace_back();
    op.kind = kind;
    op.lane = lane;
    op.unit = unit;
    op.micro = micro;
    return op;
  }

  BufferId add(const std::string& name, MemoryKind kind, size_t bytes, bool keep) {
    BufferSpec& buffer = program_.buffers.emplace_back();
    buffer.name = name;
    buffer.kind = kind;
    buffer.bytes = bytes;
    buffer.persistent = keep;
    return BufferId(program_.buffers.size()) - 1;
  }
  BufferId persistent(const std::string& name, MemoryKind kind, size_t bytes) {
    return add(name, kind, bytes, true);
  }
  BufferId buffer(const std::string& name, MemoryKind kind, size_t bytes) {
    return add(name, kind, bytes, false);
  }
  BufferId make(const UnitSpec& unit, const ActivationSpec& spec, MemoryKind kind) {
    return buffer(fmt::format("{} {}", unit.name, spec.name), kind,
                  spec.count(tokens_) * size_of(spec.dtype));
  }

  void use(Op& op, BufferId id, bool writes) {
    op.uses.push_back({id, {0, program_.buffers[size_t(id)].bytes}, writes});
  }
  void read(Op& op, BufferId id) { use(op, id, false); }
  void write(Op& op, BufferId id) { use(op, id, true); }

  static Range to_bytes(const Range& elements) {
    return {elements.begin * sizeof(float), elements.count * sizeof(float)};
  }

  void scratch(Op& op, const UnitSpec& unit, const std::vector<ActivationSpec>& specs) {
    for (const ActivationSpec& spec : specs)
      op.scratch.push_back(make(unit, spec, MemoryKind::kWorkspace));
    for (const BufferId id : op.scratch) write(op, id);
  }

  void head_inputs(Op& op, int unit) {
    op.input = stream_.at(size_t(unit) - 1);
    op.targets = batch_targets_;
    read(op, op.input);
    read(op, op.targets);
    if (op.kind == OpKind::kLogits) return;
    op.losses = buffer("losses", MemoryKind::kWorkspace, tokens_ * sizeof(float));
    write(op, op.losses);
  }

  void use_parameters(Op& op, const UnitSpec& spec, int unit) {
    use_flat(op, program_.parameters, layout_.units[size_t(unit)].flat, false);
    if (spec.borrows_from >= 0) {
      use_flat(op, program_.parameters, layout_.units[size_t(spec.borrows_from)].flat, false);
    }
  }
  void use_gradients(Op& op, const UnitSpec& spec, int unit) {
    use_flat(op, program_.gradients, layout_.units[size_t(unit)].flat, true);
    if (spec.borrows_from >= 0) {
      use_flat(op, program_.gradients, layout_.units[size_t(spec.borrows_from)].flat, true);
    }
  }
  static void use_flat(Op& op, BufferId id, const Range& elements, bool writes) {
    op.uses.push_back({id, to_bytes(elements), writes});
  }

  const Architecture& architecture_;
  const ParameterLayout& layout_;
  const StepShape& shape_;
  const size_t tokens_;
  StepProgram program_;
  BufferId batch_tokens_ = kNoBuffer;
  BufferId batch_targets_ = kNoBuffer;
  BufferId stream_gradient_ = kNoBuffer;
  std::vector<BufferId> stream_;              // the residual stream after each unit
  std::vector<std::vector<BufferId>> saved_;  // by unit
};

}  // namespace

BuiltStep build_train_step(const Architecture& architecture, const ParameterLayout& layout,
                           const Strategy& strategy, const StepShape& shape) {
  GXP_ASSERT(!strategy.shard_parameters && !strategy.shard_gradients && !strategy.shard_optimizer);
  const std::vector<Bucket> buckets = make_buckets(layout, shape.bucket_bytes);
  const int head = int(architecture.units.size()) - 1;
  ProgramBuilder step(architecture, layout, shape);
  step.train_buffers();
  for (int micro = 0; micro < shape.grad_accum; ++micro) {
    const bool last_micro = micro + 1 == shape.grad_accum;
    size_t next_bucket = 0;
    const auto gradients_ready = [&](int unit) {
      if (!last_micro || shape.world_size == 1 || buckets[next_bucket].first_unit != unit) return;
      step.reduce_gradients(int(next_bucket), buckets[next_bucket]);
      ++next_bucket;
    };
    step.next_batch(micro);
    for (int unit = 0; unit < head; ++unit) step.forward(unit, micro);
    step.loss(head, micro);
    if (last_micro && shape.world_size > 1) step.reduce_loss();
    gradients_ready(head);
    for (int unit = head - 1; unit >= 0; --unit) {
      step.backward(unit, micro);
      gradients_ready(unit);
    }
  }
  step.clip_gradients();
  step.update();
  return {std::move(step).finish(), buckets};
}

StepProgram build_forward(const Architecture& architecture, const ParameterLayout& layout,
                          const StepShape& shape, OpKind ending) {
  const int head = int(architecture.units.size()) - 1;
  ProgramBuilder pass(architecture, layout, shape);
  pass.next_batch(0);
  for (int unit = 0; unit < head; ++unit) pass.forward(unit, 0);
  pass.evaluate(ending, head);
  return std::move(pass).finish();
}

}  // namespace gxp
