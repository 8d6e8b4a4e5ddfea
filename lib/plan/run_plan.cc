#include "lib/plan/run_plan.h"

#include "lib/base/error.h"

namespace gxp {
namespace {

int shard_size(const ParallelConfig& parallel, int world_size) {
  const int size = parallel.shard_size;
  if (size == 0) return world_size;
  if (!find_strategy(parallel.strategy).shard_optimizer)
    fail(ErrorKind::kConfig,
         "parallel.shard_size {}: strategy {} shards nothing; choose another, such as hybrid_shard",
         size, parallel.strategy);
  if (world_size % size != 0)
    fail(ErrorKind::kConfig,
         "parallel.shard_size {}: {} ranks cannot be cut into such groups; choose a divisor of {}",
         size, world_size, world_size);
  return size;
}

}  // namespace

StepShape step_shape(const RunConfig& config, int world_size) {
  const int sequence = config.data.sequence > 0 ? config.data.sequence : config.model.context;
  return {.rows = size_t(config.train.micro_batch),
          .positions = size_t(sequence),
          .grad_accum = config.train.grad_accum,
          .world_size = world_size,
          .shard_size = shard_size(config.parallel, world_size),
          .optimizer_over_replicas = config.parallel.optimizer_over_replicas,
          .bucket_bytes = config.parallel.bucket_bytes,
          .hold_gradients = config.parallel.hold_gradients,
          .optimizer = make_optimizer_spec(config.optim)};
}

RunPlan plan_run(const RunConfig& config, int world_size) {
  RunPlan plan;
  plan.architecture = make_architecture(config.model);
  plan.layout = make_layout(plan.architecture, world_size);
  plan.strategy = find_strategy(config.parallel.strategy);
  plan.shape = step_shape(config, world_size);
  plan.step = build_train_step(plan.architecture, plan.layout, plan.strategy, plan.shape);
  if (!config.data.valid.empty())
    plan.validation = build_forward(plan.architecture, plan.layout, plan.strategy, plan.shape,
                                    OpKind::kEvaluateLoss);
  return plan;
}

}  // namespace gxp
