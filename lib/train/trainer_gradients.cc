// What the trainer does with gradients between backward and the optimizer.
#include "lib/train/trainer.h"
#include "lib/zero/gradients.h"

namespace gxp {

void Trainer::reduce_bucket(const Op& op) {
  const Range& bucket = built_.buckets[size_t(op.bucket)].flat;
  const Tensor sum = memory_->tensor(op.gradients.buffer).rows(op.gradients.begin, bucket.count);
  all_sum(calls_, communicator_, sum);
  if (!op.keeps) return;
  backend_.comm_ops->convert(
      memory_->tensor(built_.program.gradients).rows(bucket.begin, bucket.count), sum);
}

void Trainer::scatter_gradients(const Op& op) {
  const StepProgram& program = built_.program;
  const Tensor whole = tensor_of_wrap(layout_, *memory_, op.wrap, op.gradients);
  const bool all = op.group == RankGroup::kShards;
  const Tensor theirs = all ? whole : own_part(whole, groups_.shard_size);
  if (op.scatter)
    scatter_sum(calls_, members(op.group), theirs);
  else
    all_sum(calls_, members(op.group), theirs);
  if (!op.keeps) return;
  const Tensor mine = own_part(whole, program.optimizer_shards);
  const Range place =
      place_in_shard(layout_.wraps[size_t(op.wrap)].gradients, program.gradient_shards);
  Tensor kept = memory_->tensor(program.gradients).rows(place.begin, place.count);
  if (program.gradient_shards == 1) kept = own_part(kept, program.optimizer_shards);
  if (op.accumulate)
    backend_.comm_ops->add(kept, kept, mine);
  else
    backend_.comm_ops->convert(kept, mine);
}

void Trainer::add_gradients(const Op& op) {
  const auto view = [&](const FlatView& at) {
    return tensor_of_wrap(layout_, *memory_, op.wrap, at);
  };
  if (op.earlier.buffer == kNoBuffer)
    backend_.ops->convert(view(op.gradients), view(op.added));
  else
    backend_.ops->add(view(op.gradients), view(op.earlier), view(op.added));
}

// One sum for each part of all parameters, whoever holds it, added up in their order: so the norm
// has the same bits under every strategy.
void Trainer::measure() {
  const StepProgram& program = built_.program;
  const Memory sums = flat(program.norm_parts);
  const size_t each = norm_parts_.size() / size_t(groups_.world_size);
  for (size_t part = 0; part < norm_parts_.size(); ++part) {
    const size_t place = place_of_norm_part(part);
    if (is_sharded() && place / each != size_t(communicator_.rank())) continue;
    const Tensor sum(sums.slice(place * sizeof(double), sizeof(double)), DType::kF64, {});
    sum_squares(*backend_.ops, sum, layout_, norm_parts_[part], memory_->tensor(program.gradients),
                program.gradient_shards);
  }
}

// Those of rank 0's shard come first.
size_t Trainer::place_of_norm_part(size_t part) const {
  const size_t each = norm_parts_.size() / size_t(groups_.world_size);
  return size_t(groups_.owner_of(int(part / each))) * each + part % each;
}

}  // namespace gxp
