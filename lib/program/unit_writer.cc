#include "lib/program/unit_writer.h"

#include <fmt/format.h>

#include <utility>

namespace gxp {

UnitWriter::UnitWriter(const UnitWriters& writers, const StepInputs& inputs,
                       std::vector<Recompute> recompute)
    : writer_(writers.writer),
      parameters_(writers.parameters),
      gradients_(writers.gradients),
      inputs_(inputs),
      recompute_(std::move(recompute)),
      codes_(recompute_.size(), kNoBuffer),
      largest_(recompute_.size(), kNoBuffer),
      saved_(recompute_.size()) {}

Op& UnitWriter::emit(OpKind kind, int unit, int micro) {
  return writer_.emit(kind, Lane::kCompute, unit, micro);
}

void UnitWriter::next_batch(int micro) {
  const size_t bytes = inputs_.tokens() * sizeof(int32_t);
  tokens_ = writer_.buffer("tokens", MemoryKind::kActivations, bytes, DType::kI32);
  targets_ = writer_.buffer("targets", MemoryKind::kActivations, bytes, DType::kI32);
  Op& op = emit(OpKind::kNextBatch, -1, micro);
  op.buffers.tokens = tokens_;
  op.buffers.targets = targets_;
  writer_.write(op, tokens_);
  writer_.write(op, targets_);
  if (!inputs_.shape.documents) return;
  document_begin_ = writer_.buffer("document begins", MemoryKind::kActivations, bytes, DType::kI32);
  op.buffers.document_begin = document_begin_;
  writer_.write(op, document_begin_);
}

void UnitWriter::forward(int unit, int micro) {
  const UnitSpec& spec = inputs_.unit(unit);
  Op& op = emit(OpKind::kForward, unit, micro);
  read_input(op);
  use_documents(op);
  op.buffers.output = make_stream("stream after " + spec.name);
  writer_.write(op, op.buffers.output);
  stream_.resize(size_t(unit));
  stream_.push_back(op.buffers.output);
  use_codes(op);
  use_largest(op);
  save(op);
  use_scratch(op, spec.forward_scratch);
  parameters_.use(op, unit);
}

void UnitWriter::recompute(int unit, int micro) {
  if (recompute_of(unit) == Recompute::kNone) return;
  Op& op = emit(OpKind::kRecompute, unit, micro);
  op.buffers.recompute = recompute_of(unit);
  read_input(op);
  use_documents(op);
  use_codes(op);
  use_largest(op);
  save_again(op);
  use_scratch(op, inputs_.unit(unit).recompute_scratch);
  parameters_.use(op, unit);
}

void UnitWriter::loss(int unit, int micro) {
  Op& op = emit(OpKind::kLoss, unit, micro);
  use_head_inputs(op);
  stream_gradient_ = make_stream("stream gradient");
  write_stream_gradient(op);
  use_scratch(op, inputs_.unit(unit).backward_scratch);
  writer_.write(op, writer_.program.loss_sum);
  parameters_.use(op, unit);
  gradients_.use(op, unit);
}

void UnitWriter::reduce_loss() {
  writer_.write(
      writer_.emit_collective(OpKind::kReduceLoss, -1, {.count = 2, .dtype = DType::kF64}),
      writer_.program.loss_sum);
}

void UnitWriter::backward(int unit, int micro) {
  const UnitSpec& spec = inputs_.unit(unit);
  Op& op = emit(OpKind::kBackward, unit, micro);
  write_stream_gradient(op);
  read_input(op);
  use_documents(op);
  use_codes(op);
  use_largest(op);
  use_saved(op);
  use_scratch(op, spec.backward_scratch);
  // A table is only read forward.
  if (spec.kind != UnitKind::kEmbedding) parameters_.use(op, unit);
  gradients_.use(op, unit);
}

void UnitWriter::evaluate(OpKind kind, int unit) {
  Op& op = emit(kind, unit, 0);
  use_head_inputs(op);
  if (kind == OpKind::kLogits) {
    const size_t count = inputs_.shape.rows * size_t(inputs_.architecture.config.vocab_size);
    op.buffers.output =
        writer_.persistent("last logits", MemoryKind::kWorkspace, count * sizeof(float));
    writer_.write(op, op.buffers.output);
  }
  use_scratch(op, inputs_.unit(unit).forward_scratch);
  parameters_.use(op, unit);
}

BufferId UnitWriter::make_stream(const std::string& name) {
  return writer_.buffer(name, MemoryKind::kActivations, inputs_.stream_bytes());
}

void UnitWriter::read_input(Op& op) {
  const bool embeds = inputs_.unit(op.unit).kind == UnitKind::kEmbedding;
  BufferId& source = embeds ? op.buffers.tokens : op.buffers.input;
  source = embeds ? tokens_ : stream_.at(size_t(op.unit) - 1);
  writer_.read(op, source);
}

void UnitWriter::use_documents(Op& op) {
  const bool embeds = inputs_.unit(op.unit).kind == UnitKind::kEmbedding;
  if (!inputs_.shape.documents || (embeds && !inputs_.architecture.decoder.kind.position_table))
    return;
  op.buffers.document_begin = document_begin_;
  writer_.read(op, document_begin_);
}

void UnitWriter::use_head_inputs(Op& op) {
  op.buffers.input = stream_.at(size_t(op.unit) - 1);
  op.buffers.targets = targets_;
  writer_.read(op, op.buffers.input);
  writer_.read(op, op.buffers.targets);
  if (op.kind == OpKind::kLogits) return;
  op.buffers.losses =
      writer_.buffer("losses", MemoryKind::kWorkspace, inputs_.tokens() * sizeof(float));
  writer_.write(op, op.buffers.losses);
}

void UnitWriter::write_stream_gradient(Op& op) {
  op.buffers.stream_gradient = stream_gradient_;
  writer_.write(op, stream_gradient_);
}

void UnitWriter::use_codes(Op& op) {
  const UnitSpec& unit = inputs_.unit(op.unit);
  if (!inputs_.shape.keep_codes || unit.kind != UnitKind::kBlock) return;
  BufferId& codes = codes_[size_t(op.unit)];
  const bool makes = codes == kNoBuffer;
  if (makes)
    codes = writer_.buffer("codes of " + unit.name, MemoryKind::kWorkspace, unit.kept_code_bytes(),
                           DType::kU8);
  op.buffers.codes = codes;
  makes ? writer_.write(op, codes) : writer_.read(op, codes);
}

void UnitWriter::use_largest(Op& op) {
  const UnitSpec& unit = inputs_.unit(op.unit);
  if (!inputs_.architecture.float8 || unit.operands == 0) return;
  BufferId& largest = largest_[size_t(op.unit)];
  if (op.kind == OpKind::kForward)
    largest = writer_.buffer("largest values of " + unit.name, MemoryKind::kActivations,
                             unit.operands * sizeof(float));
  op.buffers.largest = largest;
  writer_.write(op, largest);
}

// Forward writes all of them. What it does not keep is not read, so that memory is free afterwards.
void UnitWriter::save(Op& op) {
  const UnitSpec& unit = inputs_.unit(op.unit);
  for (const ActivationSpec& spec : unit.saved) {
    const bool kept = keeps(recompute_of(op.unit), spec);
    op.buffers.saved.push_back(
        make(unit, spec, kept ? MemoryKind::kActivations : MemoryKind::kWorkspace));
    writer_.write(op, op.buffers.saved.back());
  }
  saved_[size_t(op.unit)] = op.buffers.saved;
}

void UnitWriter::save_again(Op& op) {
  const UnitSpec& unit = inputs_.unit(op.unit);
  std::vector<BufferId>& saved = saved_[size_t(op.unit)];
  for (size_t i = 0; i < saved.size(); ++i) {
    const bool kept = keeps(recompute_of(op.unit), unit.saved[i]);
    if (!kept) {
      saved[i] = make(unit, unit.saved[i], MemoryKind::kActivations);
      writer_.spec(saved[i]).name += ", made again";
    }
    writer_.use(op, saved[i], !kept);
  }
  op.buffers.saved = saved;
}

void UnitWriter::use_saved(Op& op) {
  op.buffers.saved = saved_[size_t(op.unit)];
  for (const BufferId id : op.buffers.saved) writer_.write(op, id);
}

void UnitWriter::use_scratch(Op& op, const std::vector<ActivationSpec>& specs) {
  for (const ActivationSpec& spec : specs)
    op.buffers.scratch.push_back(make(inputs_.unit(op.unit), spec, MemoryKind::kWorkspace));
  for (const BufferId id : op.buffers.scratch) writer_.write(op, id);
}

BufferId UnitWriter::make(const UnitSpec& unit, const ActivationSpec& spec, MemoryKind kind) {
  return writer_.buffer(fmt::format("{} {}", unit.name, spec.name), kind,
                        spec.count(inputs_.tokens()) * size_of(spec.dtype), spec.dtype);
}

}  // namespace gxp
