#include "lib/program/run_plan.h"

#include <algorithm>
#include <bit>

#include "lib/arch/recompute.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/shard/wrap.h"

namespace gxp {
namespace {

// The rows of logits that exist at a time on a GPU: of about 2^28 logits, 512 MiB of them in half
// precision. Pieces of one size, of whole tiles of the products, keep all multiprocessors busy.
size_t logits_rows_on_gpu(const RunConfig& config) {
  constexpr size_t kLogits = size_t{1} << 28;
  constexpr size_t kTile = 128;
  const size_t most = std::max<size_t>(64, kLogits / size_t(config.model.vocab_size));
  const size_t tokens = size_t(config.train.micro_batch) * row_positions(config);
  const size_t pieces = (tokens + most - 1) / most;
  return round_up((tokens + pieces - 1) / pieces, kTile);
}

int shard_size(const ParallelConfig& parallel, int world_size) {
  const int size = parallel.shard_size;
  if (size == 0) return world_size;
  if (!find_strategy(parallel.strategy).shard_optimizer)
    fail(ErrorKind::kConfig,
         "parallel.shard_size {}: strategy {} shards nothing; choose another, such as hybrid_shard",
         size, parallel.strategy);
  if (world_size % size != 0)
    fail(ErrorKind::kConfig,
         "parallel.shard_size {}: it does not divide {} ranks; choose a divisor of {}", size,
         world_size, world_size);
  return size;
}

// train.deterministic "any-world-size": sums over all micro-batches of a step, whoever computes
// them, form one binary tree, and the norm has a part for each.
void make_independent_of_world_size(const RunConfig& config, StepShape& shape) {
  const int micro_batches = shape.grad_accum * shape.world_size;
  if (!std::has_single_bit(unsigned(micro_batches)))
    fail(ErrorKind::kConfig,
         "train.deterministic any-world-size: {} ranks x {} micro-batches = {}, which is not a "
         "power of two; change the number of ranks or train.grad_accum",
         shape.world_size, shape.grad_accum, micro_batches);
  if (!config.parallel.hold_gradients && shape.grad_accum > 1)
    fail(ErrorKind::kConfig,
         "train.deterministic any-world-size: gradients that are reduced after every micro-batch "
         "are "
         "added in another order; set parallel.hold_gradients = true or train.grad_accum = 1");
  shape.norm_parts = micro_batches;
  shape.add_in_pairs = true;
}

// Each element is compressed in one collective between hosts: of all ranks, or of gradients' sums
// over replicas whose shard groups lie within hosts.
bool cross_hosts_once(int shard_size, const RanksOnHosts& ranks) {
  return shard_size == ranks.world_size || (ranks.world_size / ranks.hosts) % shard_size == 0;
}

void check_compressed_groups(const StepShape& shape, std::string_view setting,
                             std::string_view codec) {
  if (codec.empty()) return;
  const int of_host = shape.world_size / shape.hosts;
  if (shape.world_size % shape.hosts != 0)
    fail(ErrorKind::kConfig,
         "{} {}: {} ranks on {} hosts; start equally many on each, or set it to none", setting,
         codec, shape.world_size, shape.hosts);
  if (cross_hosts_once(shape.shard_size, {shape.world_size, shape.hosts})) return;
  fail(ErrorKind::kConfig,
       "{} {}: shard groups of {} ranks span hosts of {}; set parallel.shard_size to 0 or a "
       "divisor of {}, or {} to none",
       setting, codec, shape.shard_size, of_host, of_host, setting);
}

std::string codec_of(const std::string& setting) { return setting == "none" ? "" : setting; }

Storage storage_of(OffloadTo where) {
  if (where == OffloadTo::kNone) return Storage::kDevice;
  return where == OffloadTo::kMemory ? Storage::kHost : Storage::kFile;
}

// "auto" is none here: a run replaces it before it plans, by the memory that is free on its device
// (lib/train/keep_choice.h).
KeptOutputs kept_outputs(KeepSetting setting) {
  if (setting == KeepSetting::kAll) return KeptOutputs::kAll;
  return setting == KeepSetting::kNorms ? KeptOutputs::kNorms : KeptOutputs::kNone;
}

// cuBLASLt multiplies 8-bit matrices whose sizes are multiples of 16. Checked for a CPU too: what
// is tried there shall run on a GPU.
constexpr size_t kFloat8Multiple = 16;

void check_float8_widths(const Architecture& architecture) {
  for (const UnitSpec& unit : architecture.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      for (const size_t size : tensor.shape) {
        const bool is_multiplied = unit.kind == UnitKind::kBlock && tensor.shape.size() == 2;
        if (!is_multiplied || size % kFloat8Multiple == 0) continue;
        fail(ErrorKind::kConfig,
             "train.matmul fp8: {} is {} x {}, and sizes must be multiples of {}; change [model], "
             "or set train.matmul = \"precision\"",
             tensor.name, tensor.shape[0], tensor.shape[1], kFloat8Multiple);
      }
    }
  }
}

bool shares_optimizer(const ParallelConfig& parallel) {
  return parallel.optimizer_over_replicas ||
         find_strategy(parallel.strategy).optimizer_over_replicas;
}

OffloadShape offload_shape(const RunConfig& config, int world_size) {
  const OffloadConfig& offload = config.offload;
  if (offload.parameters != OffloadTo::kNone &&
      !can_offload_parameters(config.parallel, world_size))
    fail(ErrorKind::kConfig,
         "offload.parameters {}: on several ranks it is for strategies that shard parameters, "
         "without sharing the optimizer over replicas; use zero3, or offload.parameters = \"none\"",
         offload.parameters);
  return {.optimizer = storage_of(offload.optimizer),
          .parameters = storage_of(offload.parameters),
          .ratio = offload.ratio,
          .tile = size_t(offload.step_tile)};
}

GatherLimits gather_limits(const ParallelConfig& parallel) {
  return {.forward_prefetch = parallel.forward_prefetch,
          .backward_prefetch = parallel.backward_prefetch,
          .wraps_ahead = parallel.prefetch_wraps,
          .max_ahead = parallel.prefetch_params,
          .max_live = parallel.max_live_params,
          .persist_below = parallel.persist_params,
          .reuse_within = parallel.reuse_params,
          .hold_over_micros = parallel.hold_parameters};
}

}  // namespace

Architecture run_architecture(const RunConfig& config) {
  Architecture architecture = make_architecture(config.model, dtype_of(config.train.precision),
                                                kept_outputs(config.train.keep), config.lora);
  freeze(architecture, config.train.frozen);
  architecture.float8 = config.train.matmul == MatmulType::kFp8;
  if (architecture.float8) check_float8_widths(architecture);
  if (config.train.logits_rows > 0)
    set_logits_rows(architecture, size_t(config.train.logits_rows));
  else if (config.train.device == TrainDevice::kCuda)
    set_logits_rows(architecture, logits_rows_on_gpu(config));
  return architecture;
}

bool can_offload_parameters(const ParallelConfig& parallel, int world_size) {
  return world_size == 1 ||
         (find_strategy(parallel.strategy).shard_parameters && !shares_optimizer(parallel));
}

bool can_compress(const RunConfig& config, const RanksOnHosts& ranks) {
  const bool compresses = config.comm.codec != "none" || config.comm.gather_codec != "none";
  return !compresses || (ranks.world_size % ranks.hosts == 0 &&
                         cross_hosts_once(shard_size(config.parallel, ranks.world_size), ranks));
}

StepShape step_shape(const RunConfig& config, const RanksOnHosts& ranks) {
  const int world_size = ranks.world_size;
  StepShape shape{.rows = size_t(config.train.micro_batch),
                  .positions = row_positions(config),
                  .grad_accum = config.train.grad_accum,
                  .world_size = world_size,
                  .shard_size = shard_size(config.parallel, world_size),
                  .optimizer_over_replicas = shares_optimizer(config.parallel),
                  .hosts = ranks.hosts,
                  .codec = codec_of(config.comm.codec),
                  .gather_codec = codec_of(config.comm.gather_codec),
                  .bucket_bytes = config.parallel.bucket_bytes,
                  .hold_gradients = config.parallel.hold_gradients,
                  .gradients = dtype_of(config.train.grad_accum_dtype),
                  .reduced = dtype_of(config.parallel.reduce_dtype),
                  .gathers = gather_limits(config.parallel),
                  .norm_parts = world_size,
                  .recompute = config.train.recompute,
                  .recompute_units = config.train.recompute_units,
                  .keep_codes = config.train.fp8_weights == CodeReuse::kKept &&
                                config.train.matmul == MatmulType::kFp8 &&
                                config.train.device == TrainDevice::kCuda,
                  .documents = config.data.documents != RowDocuments::kNotApart,
                  .optimizer = make_optimizer_spec(config.optim),
                  .offload = offload_shape(config, world_size)};
  if (config.train.deterministic == Determinism::kAnyWorldSize)
    make_independent_of_world_size(config, shape);
  check_compressed_groups(shape, "comm.codec", shape.codec);
  check_compressed_groups(shape, "comm.gather_codec", shape.gather_codec);
  return shape;
}

std::vector<int> first_units(const RunConfig& config, const Architecture& architecture) {
  return first_units_of_wraps(architecture, {.policy = config.parallel.wrap,
                                             .min_params = config.parallel.wrap_min_params,
                                             .units = config.parallel.wrap_units});
}

namespace {

// All but the step.
RunPlan plan_model(const RunConfig& config, const RanksOnHosts& ranks) {
  RunPlan plan;
  plan.architecture = run_architecture(config);
  plan.strategy = find_strategy(config.parallel.strategy);
  plan.shape = step_shape(config, ranks);
  plan.attends_in_any_order = config.train.deterministic == Determinism::kOff &&
                              config.train.attention != AttentionChoice::kOwn &&
                              config.data.documents != RowDocuments::kApart;
  plan.layout = make_layout(plan.architecture, plan.shape.norm_parts,
                            first_units(config, plan.architecture), block_of(plan.shape.optimizer));
  if (has_validation(config))
    plan.validation = build_forward(plan.architecture, plan.layout, plan.strategy, plan.shape,
                                    OpKind::kEvaluateLoss);
  return plan;
}

}  // namespace

RunPlan plan_run(const RunConfig& config, const RanksOnHosts& ranks) {
  RunPlan plan = plan_model(config, ranks);
  plan.step = build_train_step(plan.architecture, plan.layout, plan.strategy, plan.shape);
  return plan;
}

RunPlan plan_evaluation(const RunConfig& config, const RanksOnHosts& ranks) {
  RunConfig run = config;
  run.train.deterministic = Determinism::kWorldSize;  // there are no sums over micro-batches
  run.comm.codec = run.comm.gather_codec = "none";
  RunPlan plan = plan_model(run, ranks);
  plan.shape.optimizer = {};
  StepShape shape = plan.shape;
  shape.rows = shape.positions = 1;
  plan.step.program =
      build_forward(plan.architecture, plan.layout, plan.strategy, shape, OpKind::kLogits);
  return plan;
}

}  // namespace gxp
