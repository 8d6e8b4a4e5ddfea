// How a step program's gradients come together. Three types may differ:
//   written   by backward: f32, in a buffer of the wrap's own or where they last
//   kept      over micro-batches and for the optimizer (StepShape::gradients): the buffer that
//   lasts reduced   over the ranks (StepShape::reduced): the message
// What departs is the sum of this rank's micro-batches: those before the last as they are kept, the
// last as it was written, rounded once to the type of the message. So it has the same bits whether
// a strategy keeps whole gradients or shards. Where two of the three agree they share memory.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/program/update_writer.h"

namespace gxp {

class GradientWriter : protected UpdateWriter {
 public:
  // What is reduced together where nothing is sharded.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }

  // Whether gradients are reduced after this micro-batch: the last, or each where shards are kept.
  [[nodiscard]] bool departs(int micro) const {
    return shape_.world_size > 1 && (micro + 1 == shape_.grad_accum || !holds_whole());
  }

  // The wrap's gradients of this micro-batch are written: they are added to those before them, and
  // brought to where they are kept or where they depart from.
  void complete_gradients(int wrap, int micro) {
    const FlatView written = std::exchange(written_[size_t(wrap)], {});
    if (shape_.add_in_pairs) return add_in_pairs(wrap, micro, written);
    const FlatView target = departs(micro) ? message_of(wrap) : kept(wrap);
    const bool adds = micro > 0 && holds_whole() && shape_.gradients != DType::kF32;
    const FlatView earlier = adds ? kept(wrap) : FlatView{};
    if (adds || !(written == target)) add(wrap, micro, {target, written, earlier});
  }

  // The wrap's sum goes to the shards of a group, then over their replicas.
  void scatter_gradients(int wrap, int micro) {
    const FlatView message = message_of(wrap);
    if (groups_.shard_size > 1) reduce_wrap(wrap, micro, RankGroup::kShards, message);
    if (groups_.replicas() > 1) reduce_wrap(wrap, micro, RankGroup::kReplicas, message);
    messages_[size_t(wrap)] = {};
    if (message.buffer == program_.gradients) return;
    Op& last = program_.ops.back();
    last.keeps = true;
    last.accumulate = micro > 0 && !holds_whole();
    const Range& gradients = layout_.wraps[size_t(wrap)].gradients;
    use_elements(last, program_.gradients, place_in_shard(gradients, program_.gradient_shards),
                 true);
  }

  void reduce_gradients(int index) {
    const Range& flat = buckets_[size_t(index)].flat;
    Op& op = emit_collective(OpKind::kReduceGradients, -1, RankGroup::kWorld, flat.count,
                             shape_.reduced);
    op.bucket = index;
    op.gradients = message_of_bucket(size_t(index));
    use_view(op, op.gradients, flat, true);
    op.keeps = op.gradients.buffer != program_.gradients;
    if (op.keeps) use_elements(op, program_.gradients, flat, true);
  }

 protected:
  GradientWriter(const Architecture& architecture, const ParameterLayout& layout,
                 const Strategy& strategy, const StepShape& shape, std::vector<Recompute> recompute)
      : UpdateWriter(architecture, layout, shape, std::move(recompute)),
        strategy_(strategy),
        buckets_(make_buckets(layout, shape.bucket_bytes, size_of(shape.reduced))),
        bucket_messages_(buckets_.size(), kNoBuffer),
        written_(layout.wraps.size()),
        messages_(layout.wraps.size()),
        earlier_(layout.wraps.size()) {}

  // The buffer that lasts; after the optimizer's shards are known.
  void gradient_buffer() {
    const bool reduces_each = shape_.grad_accum == 1 || !shape_.hold_gradients;
    const bool whole = !strategy_.shard_gradients || !reduces_each;
    program_.gradient_shards = whole ? 1 : program_.optimizer_shards;
    const size_t count = layout_.gradient_count / size_t(program_.gradient_shards);
    program_.gradients = persistent("gradients", MemoryKind::kGradients,
                                    count * size_of(shape_.gradients), shape_.gradients);
  }

  // Of an operation that makes gradients of the unit, and of what it borrows.
  void use_gradients(Op& op, int unit) {
    op.gradients = write_gradients(op, unit);
    const int lender = architecture_.units[size_t(unit)].borrows_from;
    if (lender >= 0 && !architecture_.units[size_t(lender)].tensors.front().frozen)
      op.borrowed_gradients = write_gradients(op, lender);
    const bool lasts = holds_whole() && shape_.gradients == DType::kF32;
    op.accumulate = op.micro > 0 && lasts && !shape_.add_in_pairs;
  }

  const Strategy& strategy_;

 private:
  struct Sum {
    FlatView target, added;
    FlatView earlier = {};
  };

  [[nodiscard]] bool holds_whole() const { return program_.gradient_shards == 1; }
  // Of whole gradients.
  [[nodiscard]] FlatView kept(int wrap) const {
    return {program_.gradients, layout_.wraps[size_t(wrap)].gradients.begin};
  }

  FlatView buffer_of_wrap(int wrap, DType dtype) {
    const size_t bytes = layout_.wraps[size_t(wrap)].flat.count * size_of(dtype);
    return {buffer("gradients of " + name_of(wrap), MemoryKind::kGradients, bytes, dtype), 0};
  }

  // What is reduced: made when it is first written.
  FlatView message_of(int wrap) {
    if (holds_whole() && shape_.reduced == shape_.gradients) return kept(wrap);
    if (strategy_.shard_optimizer) {
      FlatView& view = messages_[size_t(wrap)];
      if (view.buffer == kNoBuffer) view = buffer_of_wrap(wrap, shape_.reduced);
      return view;
    }
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const Bucket& bucket = buckets_[i];
      const Wrap& place = layout_.wraps[size_t(wrap)];
      if (bucket.first_unit > place.first_unit) continue;
      return {message_of_bucket(i).buffer, place.gradients.begin - bucket.flat.begin};
    }
    GXP_ASSERT(false);
    return {};
  }
  FlatView message_of_bucket(size_t index) {
    const Range& flat = buckets_[index].flat;
    if (shape_.reduced == shape_.gradients) return {program_.gradients, flat.begin};
    BufferId& id = bucket_messages_[index];
    if (id == kNoBuffer)
      id = buffer(fmt::format("gradients of bucket {}", index), MemoryKind::kGradients,
                  flat.count * size_of(shape_.reduced), shape_.reduced);
    return {id, 0};
  }

  // Where backward writes: made for a whole wrap at once.
  FlatView open(int wrap, int micro) {
    const bool is_f32 = shape_.gradients == DType::kF32;
    if (holds_whole() && is_f32 && (micro == 0 || !shape_.add_in_pairs)) return kept(wrap);
    const bool is_message = departs(micro) && shape_.reduced == DType::kF32;
    if (is_message && !(shape_.add_in_pairs && holds_whole())) return message_of(wrap);
    return buffer_of_wrap(wrap, DType::kF32);
  }

  FlatView write_gradients(Op& op, int unit) {
    if (architecture_.units[size_t(unit)].is_frozen()) return {};
    const int wrap = layout_.wrap_of[size_t(unit)];
    FlatView& view = written_[size_t(wrap)];
    if (view.buffer == kNoBuffer) view = open(wrap, op.micro);
    return use_unit(op, view, unit, true);
  }

  // Each sum is rounded to the one type that is kept and reduced, so that it does not matter where
  // the tree goes on over the ranks.
  void add_in_pairs(int wrap, int micro, const FlatView& written) {
    GXP_ASSERT(shape_.gradients == shape_.reduced);
    std::vector<FlatView>& sums = earlier_[size_t(wrap)];
    FlatView newest = written;
    if (shape_.gradients != DType::kF32) {
      newest = micro == 0 ? message_of(wrap) : buffer_of_wrap(wrap, shape_.gradients);
      add(wrap, micro, {newest, written});
    }
    for (int i = 0; i < sums_completed(micro); ++i) {
      add(wrap, micro, {sums.back(), newest, sums.back()});
      newest = sums.back();
      sums.pop_back();
    }
    if (micro + 1 < shape_.grad_accum) sums.push_back(newest);
  }

  void add(int wrap, int micro, const Sum& sum) {
    Op& op = emit_on_wrap(OpKind::kAddGradients, Lane::kCompute, wrap);
    op.micro = micro;
    op.gradients = sum.target;
    op.added = sum.added;
    op.earlier = sum.earlier;
    const Range& flat = layout_.wraps[size_t(wrap)].flat;
    use_view(op, sum.added, flat, false);
    if (sum.earlier.buffer != kNoBuffer && !(sum.earlier == sum.target))
      use_view(op, sum.earlier, flat, false);
    use_view(op, sum.target, flat, true);
  }

  void reduce_wrap(int wrap, int micro, RankGroup group, const FlatView& message) {
    Op& op = emit_collective(OpKind::kReduceGradients, wrap, group, members_part(wrap, group),
                             shape_.reduced);
    op.micro = micro;
    op.scatter = group == RankGroup::kShards || program_.optimizer_shards > groups_.shard_size;
    op.gradients = message;
    use_view(op, message, layout_.wraps[size_t(wrap)].flat, true);
  }

  const std::vector<Bucket> buckets_;
  std::vector<BufferId> bucket_messages_;       // by bucket; none: nothing is written yet
  std::vector<FlatView> written_;               // by wrap, of this micro-batch; likewise
  std::vector<FlatView> messages_;              // by wrap; likewise
  std::vector<std::vector<FlatView>> earlier_;  // by wrap: sums of micro-batches before this one
};

}  // namespace gxp
