#include "lib/zero/gradients.h"

#include <algorithm>
#include <cmath>

namespace gxp {
namespace {

// A bucket's sum goes to all ranks.
std::function<void()> bind_bucket(ShardedMemory& held, Ops& ops, const Op& op) {
  const Range& bucket = held.plan.step.buckets[size_t(op.bucket)].flat;
  const OpGradients& at = op.gradients;
  const Tensor sum = held.memory.tensor(at.own.buffer).rows(at.own.begin, bucket.count);
  const Tensor kept = held.gradients().at(bucket);
  return [&held, &ops, sum, kept, keeps = at.keeps] {
    held.calls.run(RankGroup::kWorld, Collective::kAllReduce, sum);
    if (keeps) ops.convert(kept, sum);
  };
}

// A wrap's sum goes to the shards of a group, or the sum of a shard to its replicas.
std::function<void()> bind_wrap(ShardedMemory& held, Ops& ops, const Op& op) {
  const StepProgram& program = held.program;
  const Tensor whole = held.wrap_at(op.wrap, op.gradients.own);
  const RankGroup group = op.collective.group;
  const Tensor theirs = held.part_of_group(whole, group);
  const Tensor mine = held.own_shard(whole, program.optimizer_shards);
  Tensor kept = held.gradients().wrap(op.wrap);
  if (program.gradient_shards == 1) kept = held.own_shard(kept, program.optimizer_shards);
  const Collective collective =
      op.collective.scatter ? Collective::kReduceScatter : Collective::kAllReduce;
  return [=, &held, &ops, keeps = op.gradients.keeps, accumulate = op.gradients.accumulate] {
    held.calls.run(group, collective, theirs);
    if (!keeps) return;
    if (accumulate)
      ops.add(kept, kept, mine);
    else
      ops.convert(kept, mine);
  };
}

}  // namespace

std::function<void()> bind_add_gradients(const ShardedMemory& held, Ops& ops, const Op& op) {
  const OpGradients& at = op.gradients;
  const Tensor sum = held.wrap_at(op.wrap, at.own);
  const Tensor added = held.wrap_at(op.wrap, at.added);
  if (at.earlier.buffer == kNoBuffer) return [&ops, sum, added] { ops.convert(sum, added); };
  const Tensor earlier = held.wrap_at(op.wrap, at.earlier);
  return [&ops, sum, earlier, added] { ops.add(sum, earlier, added); };
}

std::function<void()> bind_reduce_gradients(ShardedMemory& held, Ops& ops, const Op& op) {
  return op.wrap >= 0 ? bind_wrap(held, ops, op) : bind_bucket(held, ops, op);
}

void sum_squares(Ops& ops, const Tensor& total, std::span<const TensorPart> parts,
                 const FlatShards& gradients) {
  ops.fill({total.memory, DType::kF32, Shape{2}}, 0);  // an f64 of zero bits is 0, too
  for (const TensorPart& part : parts) ops.add_sum_of_squares(total, gradients.part(part));
}

const TensorPart* find_non_finite(Ops& ops, std::span<const TensorPart> parts,
                                  const FlatShards& gradients) {
  const auto found = std::ranges::find_if(parts, [&](const TensorPart& part) {
    return !std::isfinite(ops.sum_of_squares(gradients.part(part)));
  });
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace gxp
