// Writes a step program down: one call an operation, in the order of the step. What an operation
// touches follows from the model's units and from where their parameters and gradients lie then.
// The order is build.cc's.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/program/build.h"
#include "lib/program/gradient_writer.h"
#include "lib/shard/state_layout.h"

namespace gxp {

// Emits operations in the order of the step; strategy decides what is emitted, not how it runs.
class ProgramBuilder : private GradientWriter {
 public:
  // `recompute` is by unit.
  ProgramBuilder(const Architecture& architecture, const ParameterLayout& layout,
                 const Strategy& strategy, const StepShape& shape, std::vector<Recompute> recompute)
      : GradientWriter(architecture, layout, strategy, shape, std::move(recompute)),
        parameters_(layout.wraps.size()) {
    program_.groups = groups_;
    program_.parameter_shards = strategy.shard_parameters ? groups_.shard_size : 1;
    const size_t count = layout.count / size_t(program_.parameter_shards);
    program_.parameters = flat_buffer("parameters", MemoryKind::kParameters, count,
                                      architecture.compute, shape.offload.parameters, count);
    if (!gathers_parameters()) view_all(parameters_, program_.parameters);
  }

  // The buffers that only training has.
  void train_buffers() {
    const int together = shape_.optimizer_over_replicas ? groups_.world_size : groups_.shard_size;
    const int shards = strategy_.shard_optimizer ? together : 1;
    program_.optimizer_shards = shards;
    gradient_buffer();
    if (architecture_.compute != DType::kF32)
      program_.master_weights = optimizer_buffer("master weights", optimizer_count());
    for (const KeptState& state : shape_.optimizer.kept) {
      const size_t count = state_count(architecture_, layout_, state, shards);
      program_.optimizer_states.push_back(optimizer_buffer(std::string(state.name), count));
    }
    program_.loss_sum =
        persistent("loss sum", MemoryKind::kCommunication, 2 * sizeof(double), DType::kF64);
    program_.norm_parts = persistent("norm parts", MemoryKind::kCommunication,
                                     norm_part_count() * sizeof(double), DType::kF64);
  }

  // Where ranks hold shards, a wrap's parameters are gathered before they are used.
  void need_parameters(int wrap) {
    if (parameters_[size_t(wrap)].buffer == kNoBuffer) gather_parameters(wrap);
  }
  void release_parameters(int wrap) {
    if (gathers_parameters()) parameters_[size_t(wrap)] = {};
  }

  // Of a model whose parameters are of a half type. At the start of a step, so that master weights
  // may be changed between steps; offloaded ones would be fetched once more for that, and are
  // rounded as they are updated.
  void round_parameters(int wrap) {
    if (program_.master_weights == kNoBuffer || offloads_optimizer()) return;
    Op& op = emit_on_wrap(OpKind::kRoundParameters, Lane::kCompute, wrap);
    use_shard(op, program_.master_weights, program_.optimizer_shards, false);
    use_shard(op, program_.parameters, program_.parameter_shards, true);
  }

  // Where a rank holds more of the parameters than it updates: the rest, from those that did.
  void publish_parameters(int wrap) {
    if (program_.parameter_shards == program_.optimizer_shards) return;
    if (program_.optimizer_shards > groups_.shard_size) publish(wrap, RankGroup::kReplicas);
    if (program_.parameter_shards < groups_.shard_size) publish(wrap, RankGroup::kShards);
  }

  void next_batch(int micro) {
    batch_tokens_ =
        buffer("tokens", MemoryKind::kActivations, tokens_ * sizeof(int32_t), DType::kI32);
    batch_targets_ =
        buffer("targets", MemoryKind::kActivations, tokens_ * sizeof(int32_t), DType::kI32);
    Op& op = emit(OpKind::kNextBatch, Lane::kCompute, -1, micro);
    op.tokens = batch_tokens_;
    op.targets = batch_targets_;
    write(op, batch_tokens_);
    write(op, batch_targets_);
  }

  void forward(int unit, int micro) {
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(OpKind::kForward, Lane::kCompute, unit, micro);
    read_input(op, spec);
    op.output = buffer(fmt::format("stream after {}", spec.name), MemoryKind::kActivations,
                       tokens_ * size_t(architecture_.config.hidden) * sizeof(float));
    write(op, op.output);
    stream_.resize(size_t(unit));
    stream_.push_back(op.output);
    save(op, spec);
    scratch(op, spec, spec.forward_scratch);
    use_parameters(op, unit);
  }

  // What the unit's forward has not kept.
  void recompute(int unit, int micro) {
    if (recompute_of(unit) == Recompute::kNone) return;
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(OpKind::kRecompute, Lane::kCompute, unit, micro);
    op.recompute = recompute_of(unit);
    read_input(op, spec);
    save_again(op, spec);
    scratch(op, spec, spec.recompute_scratch);
    use_parameters(op, unit);
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
    use_parameters(op, unit);
    use_gradients(op, unit);
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
    use_parameters(op, unit);
  }

  void backward(int unit, int micro) {
    const UnitSpec& spec = architecture_.units[size_t(unit)];
    Op& op = emit(OpKind::kBackward, Lane::kCompute, unit, micro);
    op.stream_gradient = stream_gradient_;
    write(op, stream_gradient_);
    read_input(op, spec);
    use_saved(op);
    scratch(op, spec, spec.backward_scratch);
    if (spec.kind != UnitKind::kEmbedding)
      use_parameters(op, unit);  // a table is only read forward
    use_gradients(op, unit);
  }

  void reduce_loss() {
    write(emit_collective(OpKind::kReduceLoss, -1, RankGroup::kWorld, 2, DType::kF64),
          program_.loss_sum);
  }

  using GradientWriter::buckets;
  using GradientWriter::complete_gradients;
  using GradientWriter::departs;
  using GradientWriter::reduce_gradients;
  using GradientWriter::scatter_gradients;
  using UpdateWriter::clip_gradients;
  using UpdateWriter::measure_gradients;
  using UpdateWriter::prefetch_update;
  using UpdateWriter::update;
  using UpdateWriter::update_whole;

  StepProgram finish() && {
    place_buffers(program_);
    derive_order(program_);
    return std::move(program_);
  }

 private:
  // Whether units' parameters are brought together for each use.
  [[nodiscard]] bool gathers_parameters() const {
    return program_.parameter_shards > 1 || offloads_parameters();
  }

  void gather_parameters(int wrap) {
    const DType dtype = architecture_.compute;
    const Range& flat = layout_.wraps[size_t(wrap)].flat;
    const std::string name = "parameters of " + name_of(wrap);
    const Range place = place_in_shard(flat, program_.parameter_shards);
    FlatView shard{program_.parameters, place.begin};
    if (offloads_parameters())
      shard = fetch_parameters(wrap, place, fmt::format("fetched {}", name));
    if (program_.parameter_shards == 1) {
      parameters_[size_t(wrap)] = shard;
      return;
    }
    const size_t bytes = flat.count * size_of(dtype);
    parameters_[size_t(wrap)] = {buffer(name, MemoryKind::kParameters, bytes, dtype), 0};
    Op& op = emit_gather(wrap, RankGroup::kShards);
    use_wrap_view(op, op.parameters, parameters_, true);
    op.shard = shard;
    use_view(op, shard, place, false);
  }

  Op& emit_gather(int wrap, RankGroup group) {
    return emit_collective(OpKind::kGatherParameters, wrap, group, members_part(wrap, group),
                           architecture_.compute);
  }

  void publish(int wrap, RankGroup group) {
    Op& op = emit_gather(wrap, group);
    op.publishes = true;
    if (program_.parameter_shards > 1)
      use_shard(op, program_.parameters, program_.parameter_shards, true);
    else
      use_wrap_view(op, op.parameters, parameters_, true);
  }

  void read_input(Op& op, const UnitSpec& spec) {
    if (spec.kind == UnitKind::kEmbedding) {
      op.tokens = batch_tokens_;
      read(op, op.tokens);
    } else {
      op.input = stream_.at(size_t(op.unit) - 1);
      read(op, op.input);
    }
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

  void use_parameters(Op& op, int unit) {
    op.parameters = read_parameters(op, unit);
    const int lender = architecture_.units[size_t(unit)].borrows_from;
    if (lender >= 0) op.borrowed_parameters = read_parameters(op, lender);
  }
  FlatView read_parameters(Op& op, int unit) {
    const FlatView& view = parameters_[size_t(layout_.wrap_of[size_t(unit)])];
    GXP_ASSERT(view.buffer != kNoBuffer);
    return use_unit(op, view, unit, false);
  }
  // All of the operation's wrap, which `views` has.
  void use_wrap_view(Op& op, FlatView& view, const std::vector<FlatView>& views, bool writes) {
    view = views[size_t(op.wrap)];
    use_view(op, view, layout_.wraps[size_t(op.wrap)].flat, writes);
  }
  void view_all(std::vector<FlatView>& views, BufferId id) const {
    for (size_t wrap = 0; wrap < views.size(); ++wrap)
      views[wrap] = {id, layout_.wraps[wrap].flat.begin};
  }

  std::vector<FlatView> parameters_;  // by wrap; no buffer: not gathered
  BufferId batch_tokens_ = kNoBuffer;
  BufferId batch_targets_ = kNoBuffer;
  BufferId stream_gradient_ = kNoBuffer;
  std::vector<BufferId> stream_;  // the residual stream after each unit
};

}  // namespace gxp
