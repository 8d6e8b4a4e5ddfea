#include "lib/program/parameter_writer.h"

#include "lib/base/error.h"

namespace gxp {

ParameterWriter::ParameterWriter(ProgramWriter& writer, const StepInputs& inputs,
                                 OffloadWriter& offload)
    : writer_(writer), inputs_(inputs), offload_(offload), places_(inputs.layout.wraps.size()) {
  StepProgram& program = writer.program;
  program.parameter_shards = inputs.parameter_shards();
  program.parameters = offload.make_parameters(
      inputs.layout.count / size_t(program.parameter_shards), inputs.architecture.compute);
  if (gathers()) return;
  for (size_t wrap = 0; wrap < places_.size(); ++wrap)
    places_[wrap] = {program.parameters, inputs.layout.wraps[wrap].flat.begin};
}

bool ParameterWriter::gathers() const {
  return writer_.program.parameter_shards > 1 || offload_.offloads_parameters();
}

void ParameterWriter::round(int wrap) {
  const StepProgram& program = writer_.program;
  if (program.master_weights == kNoBuffer || offload_.offloads_optimizer()) return;
  Op& op = writer_.emit_on_wrap(OpKind::kRoundParameters, Lane::kCompute, wrap);
  use_shard(op, program.master_weights, program.optimizer_shards, false);
  use_shard(op, program.parameters, program.parameter_shards, true);
}

void ParameterWriter::publish(int wrap) {
  const StepProgram& program = writer_.program;
  if (program.parameter_shards == program.optimizer_shards) return;
  const int shard_size = inputs_.groups.shard_size;
  if (program.optimizer_shards > shard_size) publish_among(wrap, RankGroup::kReplicas);
  if (program.parameter_shards < shard_size) publish_among(wrap, RankGroup::kShards);
}

void ParameterWriter::publish_among(int wrap, RankGroup group) {
  Op& op = emit_gather(wrap, group);
  op.parameters.publishes = true;
  const StepProgram& program = writer_.program;
  if (program.parameter_shards > 1)
    use_shard(op, program.parameters, program.parameter_shards, true);
  else
    write_wrap(op);
}

void ParameterWriter::need(int wrap) {
  if (places_[size_t(wrap)].buffer == kNoBuffer) gather(wrap);
}

void ParameterWriter::release(int wrap) {
  if (gathers()) places_[size_t(wrap)] = {};
}

void ParameterWriter::gather(int wrap) {
  const StepProgram& program = writer_.program;
  const DType dtype = inputs_.architecture.compute;
  const std::string name = "parameters of " + inputs_.name_of(wrap);
  const Range place =
      ShardRanges::of_parameters(inputs_.layout, program.parameter_shards).wrap(wrap);
  FlatView shard{program.parameters, place.begin};
  if (offload_.offloads_parameters())
    shard = offload_.fetch_parameters(wrap, place, "fetched " + name);
  if (program.parameter_shards == 1) {
    places_[size_t(wrap)] = shard;
    return;
  }
  const size_t bytes = inputs_.wrap(wrap).flat.count * size_of(dtype);
  places_[size_t(wrap)] = {writer_.buffer(name, MemoryKind::kParameters, bytes, dtype), 0};
  Op& op = emit_gather(wrap, RankGroup::kShards);
  write_wrap(op);
  op.parameters.shard = shard;
  writer_.use_view(op, shard, place.count, false);
}

Op& ParameterWriter::emit_gather(int wrap, RankGroup group) {
  return writer_.emit_collective(OpKind::kGatherParameters, wrap,
                                 {.group = group,
                                  .count = inputs_.count_of_members(wrap, group),
                                  .dtype = inputs_.architecture.compute});
}

void ParameterWriter::use(Op& op, int unit) {
  op.parameters.own = read(op, unit);
  const int lender = inputs_.unit(unit).borrows_from;
  if (lender >= 0) op.parameters.borrowed = read(op, lender);
}

FlatView ParameterWriter::read(Op& op, int unit) {
  const FlatView& wrap = places_[size_t(inputs_.layout.wrap_of[size_t(unit)])];
  GXP_ASSERT(wrap.buffer != kNoBuffer);
  const FlatView own = inputs_.view_of_unit(wrap, unit);
  writer_.use_view(op, own, inputs_.count_of_unit(unit), false);
  return own;
}

void ParameterWriter::write_wrap(Op& op) {
  op.parameters.own = places_[size_t(op.wrap)];
  writer_.use_view(op, op.parameters.own, inputs_.wrap(op.wrap).flat.count, true);
}

void ParameterWriter::use_shard(Op& op, BufferId id, int shards, bool writes) {
  const Range shard = ShardRanges::of_parameters(inputs_.layout, shards).wrap(op.wrap);
  writer_.use_elements(op, id, shard, writes);
}

}  // namespace gxp
