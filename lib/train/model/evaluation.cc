#include "lib/train/model/evaluation.h"

#include <algorithm>
#include <array>
#include <span>

#include "lib/base/error.h"
#include "lib/collective/communicator.h"
#include "lib/data/batch_loader.h"
#include "lib/train/model/forward_pass.h"

namespace gxp {
namespace {

// The rows of every rank's micro-batch, together.
uint64_t rows_of_all(const RankModel& model) {
  return uint64_t(model.sharded.groups.world_size) * model.plan.shape.rows;
}

// Of `micro_batches` per rank, without the rows from position `end` of the data on.
EvaluatedLoss evaluate(RankModel& model, const Dataset& data, uint64_t micro_batches,
                       uint64_t end) {
  model.parameters.publish();
  const size_t rows = model.plan.shape.rows, row_tokens = model.plan.shape.positions;
  const ShardedMemory& sharded = model.sharded;
  ForwardPass pass(model, model.plan.shape, model.plan.validation.value());
  const SampleOrder order(RowOrder::kSequential, 0, data.sample_count());
  BatchLoader loader(data, order,
                     {.rank = sharded.rank,
                      .world_size = sharded.groups.world_size,
                      .rows = int(rows),
                      .documents = model.plan.shape.documents});
  loader.start(0);
  uint64_t position = uint64_t(sharded.rank) * rows;
  std::array<double, 2> sums = {0, 0};  // losses, targets that count
  pass.fill = [&](const BatchTensors& batch) {
    loader.next(batch, Deadline::after(kDataTimeout));
    const size_t left = size_t(std::min<uint64_t>(end - std::min(end, position), rows));
    const std::span all(batch.targets.data<int32_t>(), rows * row_tokens);
    std::ranges::fill(all.subspan(left * row_tokens), kNoLabel);
    sums[1] += double(std::ranges::count_if(all, [](int32_t target) { return target >= 0; }));
    position += rows_of_all(model);
  };
  pass.finish = [&](const UnitTensors& head) { sums[0] += model.backend.ops->sum(head.losses); };
  for (uint64_t batch = 0; batch < micro_batches; ++batch) pass.run();
  sharded.calls.world().all_reduce(memory_of(sums), DType::kF64, ReduceOp::kSum);
  if (sums[1] == 0)
    fail(ErrorKind::kCorrupt,
         "evaluate data.valid: none of the targets counts, since every label in these rows is {}",
         kNoLabel);
  return {sums[0], uint64_t(sums[1])};
}

}  // namespace

EvaluatedLoss evaluate(RankModel& model, const Dataset& data) {
  const uint64_t together = rows_of_all(model), samples = data.sample_count();
  return evaluate(model, data, (samples + together - 1) / together, samples);
}

EvaluatedLoss evaluate(RankModel& model, const Dataset& data, int micro_batches) {
  const auto batches = uint64_t(micro_batches);
  return evaluate(model, data, batches, batches * rows_of_all(model));
}

}  // namespace gxp
