#include "lib/program/gradient_writer.h"

#include <fmt/format.h>

#include <utility>

#include "lib/base/error.h"

namespace gxp {

GradientWriter::GradientWriter(ProgramWriter& writer, const StepInputs& inputs)
    : writer_(writer),
      inputs_(inputs),
      shape_(inputs.shape),
      buckets_(make_buckets(inputs.layout, shape_.bucket_bytes, size_of(shape_.reduced))),
      bucket_messages_(buckets_.size()),
      written_(inputs.layout.wraps.size()),
      messages_(inputs.layout.wraps.size()),
      earlier_(inputs.layout.wraps.size()) {}

void GradientWriter::make_buffer() {
  StepProgram& program = writer_.program;
  const bool reduces_each = shape_.grad_accum == 1 || !shape_.hold_gradients;
  const bool whole = !inputs_.strategy.shard_gradients || !reduces_each;
  program.gradient_shards = whole ? 1 : program.optimizer_shards;
  const size_t count = inputs_.layout.trained_count / size_t(program.gradient_shards);
  program.gradients = writer_.persistent("gradients", MemoryKind::kGradients,
                                         count * size_of(shape_.gradients), shape_.gradients);
  if (shape_.codec.empty() || shape_.world_size == 1) return;
  const size_t ranks_of_host = size_t(shape_.world_size / shape_.hosts);
  program.residuals =
      writer_.persistent("codec residuals", MemoryKind::kCommunication,
                         inputs_.layout.trained_count / ranks_of_host * sizeof(float), DType::kF32);
}

bool GradientWriter::departs(int micro) const {
  return shape_.world_size > 1 && (micro + 1 == shape_.grad_accum || !holds_whole());
}

void GradientWriter::use(Op& op, int unit) {
  op.gradients.own = write(op, inputs_.place(unit).trained);
  const int lender = inputs_.unit(unit).borrows_from;
  if (lender >= 0 && !inputs_.unit(lender).tensors.front().frozen)
    op.gradients.borrowed = write(op, inputs_.place(lender).trained);
  const bool lasts = holds_whole() && shape_.gradients == DType::kF32;
  op.gradients.accumulate = op.micro > 0 && lasts && !shape_.add_in_pairs;
}

FlatView GradientWriter::write(Op& op, const UnitPart& part) {
  if (part.wrap < 0) return {};
  FlatView& wrap = written_[size_t(part.wrap)];
  if (wrap.buffer == kNoBuffer) wrap = open(part.wrap, op.micro);
  const FlatView view = inputs_.view_of(part, wrap);
  writer_.use_view(op, view, part.flat.count, true);
  return view;
}

FlatView GradientWriter::open(int wrap, int micro) {
  const bool is_f32 = shape_.gradients == DType::kF32;
  if (holds_whole() && is_f32 && (micro == 0 || !shape_.add_in_pairs)) return kept(wrap);
  const bool is_message = departs(micro) && shape_.reduced == DType::kF32;
  if (is_message && !(shape_.add_in_pairs && holds_whole())) return message_of(wrap);
  return make_wrap_buffer(wrap, DType::kF32);
}

FlatView GradientWriter::kept(int wrap) const {
  return {writer_.program.gradients, inputs_.wrap(wrap).flat.begin};
}

FlatView GradientWriter::make_wrap_buffer(int wrap, DType dtype) {
  const size_t bytes = inputs_.wrap(wrap).flat.count * size_of(dtype);
  const std::string name = "gradients of " + inputs_.name_of(wrap);
  return {writer_.buffer(name, MemoryKind::kGradients, bytes, dtype), 0};
}

FlatView GradientWriter::message_of(int wrap) {
  if (holds_whole() && shape_.reduced == shape_.gradients) return kept(wrap);
  if (inputs_.strategy.shard_optimizer) {
    FlatView& view = messages_[size_t(wrap)];
    if (view.buffer == kNoBuffer) view = make_wrap_buffer(wrap, shape_.reduced);
    return view;
  }
  const FsdpUnit& place = inputs_.wrap(wrap);
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i].first_unit > place.first_unit) continue;
    return {message_of_bucket(i).buffer, place.flat.begin - buckets_[i].flat.begin};
  }
  GXP_ASSERT(false);
  return {};
}

FlatView GradientWriter::message_of_bucket(size_t index) {
  const Range& flat = buckets_[index].flat;
  if (shape_.reduced == shape_.gradients) return {writer_.program.gradients, flat.begin};
  FlatView& view = bucket_messages_[index];
  if (view.buffer == kNoBuffer)
    view.buffer =
        writer_.buffer(fmt::format("gradients of bucket {}", index), MemoryKind::kGradients,
                       flat.count * size_of(shape_.reduced), shape_.reduced);
  return view;
}

void GradientWriter::complete(int wrap, int micro) {
  const FlatView written = std::exchange(written_[size_t(wrap)], {});
  if (shape_.add_in_pairs) return add_in_pairs(wrap, micro, written);
  const FlatView target = departs(micro) ? message_of(wrap) : kept(wrap);
  const bool adds = micro > 0 && holds_whole() && shape_.gradients != DType::kF32;
  const FlatView earlier = adds ? kept(wrap) : FlatView{};
  if (adds || !(written == target)) add(wrap, micro, {target, written, earlier});
}

// Each sum is rounded to the one type that is kept and reduced, so that it does not matter where
// the tree goes on over the ranks.
void GradientWriter::add_in_pairs(int wrap, int micro, const FlatView& written) {
  GXP_ASSERT(shape_.gradients == shape_.reduced);
  std::vector<FlatView>& sums = earlier_[size_t(wrap)];
  FlatView newest = written;
  if (shape_.gradients != DType::kF32) {
    newest = micro == 0 ? message_of(wrap) : make_wrap_buffer(wrap, shape_.gradients);
    add(wrap, micro, {newest, written});
  }
  for (int i = 0; i < sums_completed(micro); ++i) {
    add(wrap, micro, {sums.back(), newest, sums.back()});
    newest = sums.back();
    sums.pop_back();
  }
  if (micro + 1 < shape_.grad_accum) sums.push_back(newest);
}

void GradientWriter::add(int wrap, int micro, const Sum& sum) {
  Op& op = writer_.emit_on_wrap(OpKind::kAddGradients, Lane::kCompute, wrap);
  op.micro = micro;
  op.gradients.own = sum.target;
  op.gradients.added = sum.added;
  op.gradients.earlier = sum.earlier;
  const size_t count = inputs_.wrap(wrap).flat.count;
  writer_.use_view(op, sum.added, count, false);
  if (sum.earlier.buffer != kNoBuffer && !(sum.earlier == sum.target))
    writer_.use_view(op, sum.earlier, count, false);
  writer_.use_view(op, sum.target, count, true);
}

void GradientWriter::scatter(int wrap, int micro) {
  StepProgram& program = writer_.program;
  const FlatView message = message_of(wrap);
  if (inputs_.groups.shard_size > 1) reduce_wrap(wrap, micro, RankGroup::kShards, message);
  if (inputs_.groups.replicas() > 1) reduce_wrap(wrap, micro, RankGroup::kReplicas, message);
  messages_[size_t(wrap)] = {};
  if (message.buffer == program.gradients) return;
  Op& last = program.ops.back();
  last.gradients.keeps = true;
  last.gradients.accumulate = micro > 0 && !holds_whole();
  const Range shard = ShardRanges(inputs_.layout, program.gradient_shards).wrap(wrap);
  writer_.use_elements(last, program.gradients, shard, true);
}

void GradientWriter::reduce_wrap(int wrap, int micro, RankGroup group, const FlatView& message) {
  const bool all_hold_parts = writer_.program.optimizer_shards > inputs_.groups.shard_size;
  Op& op = writer_.emit_collective(OpKind::kReduceGradients, wrap,
                                   {.group = group,
                                    .count = inputs_.count_of_members(wrap, group),
                                    .dtype = shape_.reduced,
                                    .scatter = group == RankGroup::kShards || all_hold_parts});
  op.micro = micro;
  op.gradients.own = message;
  writer_.use_view(op, message, inputs_.wrap(wrap).flat.count, true);
  const bool last = group == RankGroup::kReplicas || inputs_.groups.replicas() == 1;
  if (last) compress(op, inputs_.wrap(wrap).flat);
}

// Each host has a residual for every element, which its ranks hold equal parts of. Sums within a
// host alone are exact; where a shard group is smaller than the world, the sum over replicas is the
// one between hosts.
void GradientWriter::compress(Op& op, const Range& flat) {
  const BufferId residuals = writer_.program.residuals;
  if (residuals == kNoBuffer) return;
  const size_t ranks_of_host = size_t(shape_.world_size / shape_.hosts);
  op.collective.codec = shape_.codec;
  op.gradients.residual = {residuals, flat.begin / ranks_of_host};
  writer_.use_view(op, op.gradients.residual, flat.count / ranks_of_host, true);
}

void GradientWriter::reduce(int bucket) {
  const BufferId kept = writer_.program.gradients;
  const Range& flat = buckets_[size_t(bucket)].flat;
  Op& op = writer_.emit_collective(OpKind::kReduceGradients, -1,
                                   {.count = flat.count, .dtype = shape_.reduced});
  op.bucket = bucket;
  op.gradients.own = message_of_bucket(size_t(bucket));
  writer_.use_view(op, op.gradients.own, flat.count, true);
  op.gradients.keeps = op.gradients.own.buffer != kept;
  if (op.gradients.keeps) writer_.use_elements(op, kept, flat, true);
  compress(op, flat);
}

}  // namespace gxp
