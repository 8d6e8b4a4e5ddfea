#include "lib/zero/gradients.h"

#include <algorithm>
#include <cmath>

namespace gxp {
namespace {

// The sum over the operation's group.
std::function<void()> bind_sum(ShardedMemory& sharded, const Op& op, const Tensor& data) {
  const FlatView& residual = op.gradients.residual;
  if (residual.buffer != kNoBuffer)
    return sharded.compressed.bind_sum(op, data, sharded.tensor(residual.buffer));
  return sharded.calls.bind(
      op.collective.group,
      op.collective.scatter ? Collective::kReduceScatter : Collective::kAllReduce, data);
}

// A bucket's sum goes to all ranks.
std::function<void()> bind_bucket(ShardedMemory& sharded, Ops& ops, const Op& op) {
  const Range& bucket = sharded.plan.step.buckets[size_t(op.bucket)].flat;
  const OpGradients& at = op.gradients;
  const Tensor sum = sharded.tensor(at.own.buffer).rows(at.own.begin, bucket.count);
  const Tensor kept = sharded.gradients().at(bucket);
  const std::function<void()> reduce = bind_sum(sharded, op, sum);
  return [&ops, sum, kept, reduce, keeps = at.keeps] {
    reduce();
    if (keeps) ops.convert(kept, sum);
  };
}

// An FSDP unit's sum goes to the shards of a group, or the sum of a shard to its replicas.
std::function<void()> bind_wrap(ShardedMemory& sharded, Ops& ops, const Op& op) {
  const StepProgram& program = sharded.program;
  const Tensor whole = sharded.wrap_at(op.wrap, op.gradients.own);
  const RankGroup group = op.collective.group;
  const Tensor theirs = sharded.part_of_group(whole, group);
  const Tensor mine = sharded.own_shard(whole, program.optimizer_shards);
  Tensor kept = sharded.gradients().wrap(op.wrap);
  if (program.gradient_shards == 1) kept = sharded.own_shard(kept, program.optimizer_shards);
  const std::function<void()> reduce = bind_sum(sharded, op, theirs);
  return [=, &ops, keeps = op.gradients.keeps, accumulate = op.gradients.accumulate] {
    reduce();
    if (!keeps) return;
    if (accumulate)
      ops.add(kept, kept, mine);
    else
      ops.convert(kept, mine);
  };
}

std::function<void()> bind_add(const ShardedMemory& sharded, Ops& ops, const Op& op) {
  const OpGradients& at = op.gradients;
  const Tensor sum = sharded.wrap_at(op.wrap, at.own);
  const Tensor added = sharded.wrap_at(op.wrap, at.added);
  if (at.earlier.buffer == kNoBuffer) return [&ops, sum, added] { ops.convert(sum, added); };
  const Tensor earlier = sharded.wrap_at(op.wrap, at.earlier);
  return [&ops, sum, earlier, added] { ops.add(sum, earlier, added); };
}

}  // namespace

std::function<void()> bind_gradients(ShardedMemory& sharded, Ops& ops, const Op& op) {
  if (op.kind == OpKind::kAddGradients) return bind_add(sharded, ops, op);
  return op.wrap >= 0 ? bind_wrap(sharded, ops, op) : bind_bucket(sharded, ops, op);
}

void sum_squares(Ops& ops, const Tensor& total, std::span<const TensorPart> parts,
                 const FlatShards& gradients) {
  ops.fill({total.memory, DType::kF32, Shape{2}}, 0);  // an f64 of zero bits is 0, too
  Range run{};                                         // parts of a unit that lie side by side
  int unit = -1;
  const auto add_run = [&] {
    if (run.count > 0) ops.add_sum_of_squares(total, gradients.at(run));
  };
  for (const TensorPart& part : parts) {
    const Range at = gradients.places.part(part);
    const bool continues = part.unit == unit && at.begin == run.end();
    if (!continues) add_run();
    run = continues ? joined(run, at) : at;
    unit = part.unit;
  }
  add_run();
}

const TensorPart* find_non_finite(Ops& ops, std::span<const TensorPart> parts,
                                  const FlatShards& gradients) {
  const auto found = std::ranges::find_if(parts, [&](const TensorPart& part) {
    return !std::isfinite(ops.sum_of_squares(gradients.part(part)));
  });
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace gxp
