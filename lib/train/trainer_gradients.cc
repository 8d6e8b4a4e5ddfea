// What the trainer does with gradients between backward and the optimizer.
#include "lib/train/trainer.h"
#include "lib/zero/gradients.h"

namespace gxp {

FlatShards Trainer::gradients() const {
  const StepProgram& program = plan_.step.program;
  return {ShardPlaces::of_gradients(plan_.layout, program.gradient_shards),
          memory_->tensor(program.gradients)};
}

void Trainer::reduce_bucket(const Op& op) {
  const Range& bucket = plan_.step.buckets[size_t(op.bucket)].flat;
  const Tensor sum =
      memory_->tensor(op.gradients.own.buffer).rows(op.gradients.own.begin, bucket.count);
  calls_.all_reduce(communicator_, sum.memory, sum.dtype, ReduceOp::kSum);
  if (!op.gradients.keeps) return;
  backend_.comm_ops->convert(
      memory_->tensor(plan_.step.program.gradients).rows(bucket.begin, bucket.count), sum);
}

void Trainer::scatter_gradients(const Op& op) {
  const StepProgram& program = plan_.step.program;
  const Tensor whole = tensor_of_wrap(plan_.layout, *memory_, op.wrap, op.gradients.own);
  const bool all = op.collective.group == RankGroup::kShards;
  const Tensor theirs = all ? whole : own_part(whole, groups_.shard_size);
  if (op.collective.scatter)
    calls_.reduce_scatter(members(op.collective.group), theirs.memory, theirs.dtype,
                          ReduceOp::kSum);
  else
    calls_.all_reduce(members(op.collective.group), theirs.memory, theirs.dtype, ReduceOp::kSum);
  if (!op.gradients.keeps) return;
  const Tensor mine = own_part(whole, program.optimizer_shards);
  Tensor kept = gradients().wrap(op.wrap);
  if (program.gradient_shards == 1) kept = own_part(kept, program.optimizer_shards);
  if (op.gradients.accumulate)
    backend_.comm_ops->add(kept, kept, mine);
  else
    backend_.comm_ops->convert(kept, mine);
}

void Trainer::add_gradients(const Op& op) {
  const auto view = [&](const FlatView& at) {
    return tensor_of_wrap(plan_.layout, *memory_, op.wrap, at);
  };
  if (op.gradients.earlier.buffer == kNoBuffer)
    backend_.ops->convert(view(op.gradients.own), view(op.gradients.added));
  else
    backend_.ops->add(view(op.gradients.own), view(op.gradients.earlier), view(op.gradients.added));
}

// One sum for each part of all parameters, whoever holds it, added up in their order: so the norm
// has the same bits under every strategy.
void Trainer::measure() {
  const StepProgram& program = plan_.step.program;
  const Memory sums = flat(program.norm_parts);
  const size_t each = norm_parts_.size() / size_t(groups_.world_size);
  for (size_t part = 0; part < norm_parts_.size(); ++part) {
    const size_t place = place_of_norm_part(part);
    if (is_sharded() && place / each != size_t(communicator_.rank())) continue;
    const Tensor sum(sums.slice(place * sizeof(double), sizeof(double)), DType::kF64, {});
    sum_squares(*backend_.ops, sum, norm_parts_[part], gradients());
  }
}

// The parts of rank 0's shard come first.
size_t Trainer::place_of_norm_part(size_t part) const {
  const size_t each = norm_parts_.size() / size_t(groups_.world_size);
  return size_t(groups_.owner_of(int(part / each))) * each + part % each;
}

}  // namespace gxp
