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
  if (inputs_.wrap(wrap).frozen) return;
  Op& op = writer_.emit_on_wrap(OpKind::kRoundParameters, Lane::kCompute, wrap);
  const ShardRanges master(inputs_.layout, program.optimizer_shards);
  writer_.use_elements(op, program.master_weights, master.wrap(wrap), false);
  writer_.use_elements(op, program.parameters, own_shard(wrap), true);
}

void ParameterWriter::publish(int wrap) {
  if (inputs_.wrap(wrap).frozen) return;
  for (const RankGroup group : writer_.program.publishing_groups()) publish_among(wrap, group);
}

void ParameterWriter::publish_among(int wrap, RankGroup group) {
  Op& op = emit_gather(wrap, group);
  op.parameters.publishes = true;
  const StepProgram& program = writer_.program;
  if (program.parameter_shards > 1)
    writer_.use_elements(op, program.parameters, own_shard(wrap), true);
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
  const Range place = own_shard(wrap);
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
  if (inputs_.groups.hosts_of(RankGroup::kShards) > 1)
    op.collective.codec = inputs_.shape.gather_codec;
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
  op.parameters.own = read(op, inputs_.place(unit).trained);
  op.parameters.frozen = read(op, inputs_.place(unit).frozen);
  const int lender = inputs_.unit(unit).borrows_from;
  if (lender >= 0) op.parameters.borrowed = read(op, inputs_.place(lender).part_with(0));
}

FlatView ParameterWriter::read(Op& op, const UnitPart& part) {
  if (part.wrap < 0) return {};
  const FlatView& wrap = places_[size_t(part.wrap)];
  GXP_ASSERT(wrap.buffer != kNoBuffer);
  const FlatView view = inputs_.view_of(part, wrap);
  writer_.use_view(op, view, part.flat.count, false);
  return view;
}

void ParameterWriter::write_wrap(Op& op) {
  op.parameters.own = places_[size_t(op.wrap)];
  writer_.use_view(op, op.parameters.own, inputs_.wrap(op.wrap).flat.count, true);
}

Range ParameterWriter::own_shard(int wrap) const {
  return ShardRanges(inputs_.layout, writer_.program.parameter_shards).wrap(wrap);
}

}  // namespace gxp
