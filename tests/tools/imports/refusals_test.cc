// Values and keys that are easily read as something else: each is taken for what its program takes it
// for, or refused by its name.
#include <algorithm>
#include <fstream>

#include "lib/tools/imports/import.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

// "key verdict", and in brackets what it sets: "fp16.enabled mapped {train.precision = \"fp16\"}".
std::string verdict_of(const ImportResult& result, const std::string& name) {
  const auto key = std::ranges::find(result.keys, name, &ImportedKey::key);
  if (key == result.keys.end()) return "missing";
  std::string text(kVerdictNames[size_t(key->verdict)]);
  for (const auto& [setting, value] : key->settings) text += " " + setting + "=" + to_toml(value);
  return text;
}

ImportResult import_text(const std::string& text) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "config") << text;
  return import_file({.path = directory / "config", .ranks = 8});
}

struct JudgedKey {
  std::string text, key, verdict;
};

std::string deepspeed(const std::string& more) {
  return "{train_micro_batch_size_per_gpu: 2, " + more + "}";
}
std::string zero3(const std::string& more) {
  return deepspeed("zero_optimization: {stage: 3, " + more + "}");
}
std::string fsdp(const std::string& more) {
  return "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  " + more + "\n";
}
std::string arguments(const std::string& more) {
  return "{\"output_dir\": \"o\", \"max_steps\": 100, " + more + "}";
}
std::string titan(const std::string& more) {
  return "[training]\nsteps = 1000\nlocal_batch_size = 2\n" + more;
}

const std::vector<JudgedKey> kDeepSpeedKeys = {
    {deepspeed("fp16: true"), "fp16", "refused"},
    {deepspeed("fp16: {enabled: maybe\n}"), "fp16.enabled", "refused"},
    {deepspeed("fp16: {enabled: 2}"), "fp16.enabled", "refused"},
    {deepspeed("fp16: {enabled: \"true\"}"), "fp16.enabled", "mapped train.precision=\"fp16\""},
    {deepspeed("fp16: {enabled: true, typo: 1}"), "fp16.typo", "refused"},
    {deepspeed("fp16: {enabled: true, loss_scale: false}"), "fp16.loss_scale", "refused"},
    {deepspeed("bf16: {enabled: false}, bfloat16: {enabled: true}"), "bfloat16.enabled", "ignored"},
    {deepspeed("bfloat16: {enabled: true}"), "bfloat16.enabled", "mapped train.precision=\"bf16\""},
    {deepspeed("optimizer: AdamW\n"), "optimizer", "refused"},
    {deepspeed("optimizer: {params: {lr: 1}}"), "optimizer.params.lr", "ignored"},
    {deepspeed("optimizer: {type: \"SGD\", params: {betas: [0.9, 0.9]}}"), "optimizer.params.betas",
     "refused"},
    {deepspeed("gradient_clipping: {a: 1}"), "gradient_clipping.a", "refused"},
    {deepspeed("zero_optimization: 2"), "zero_optimization", "refused"},
    {deepspeed("nebula: {enabled: true}"), "nebula.enabled", "refused"},
    {deepspeed("data_types: {grad_accum_dtype: \"bfloat16\"}"), "data_types.grad_accum_dtype",
     "mapped train.grad_accum_dtype=\"bf16\""},
    {deepspeed("scheduler: {type: \"WarmupLR\", params: {warmup_num_steps: 1}}"),
     "scheduler.params.warmup_num_steps", "changed lr_schedule.warmup_steps=2"},
    {deepspeed("scheduler: {type: \"WarmupLR\", params: {warmup_num_steps: null}}"),
     "scheduler.params.warmup_num_steps", "refused"},
    {deepspeed("scheduler: {type: \"WarmupLR\", params: {last_batch_iteration: 5}}"),
     "scheduler.params.last_batch_iteration", "refused"},
    {zero3("zero_hpz_partition_size: 2.5"), "zero_optimization.zero_hpz_partition_size", "refused"},
    {zero3("zero_hpz_partition_size: 4, mics_shard_size: 4"), "zero_optimization.mics_shard_size",
     "refused"},
    {zero3("stage3_prefetch_bucket_size: -1"), "zero_optimization.stage3_prefetch_bucket_size",
     "refused"},
    {zero3("stage3_max_live_parameters: null"), "zero_optimization.stage3_max_live_parameters",
     "refused"},
    {zero3("zero_quantized_weights: true"), "zero_optimization.zero_quantized_weights",
     "changed comm.gather_codec=\"int8\""},
    {deepspeed("zero_optimization: {stage: 2, zero_quantized_weights: true}"),
     "zero_optimization.zero_quantized_weights", "ignored"},
    {zero3("zero_quantized_gradients: true"), "zero_optimization.zero_quantized_gradients",
     "changed comm.codec=\"int4\""},
    {zero3("zero_quantized_gradients: true}, fp16: {enabled: true"),
     "zero_optimization.zero_quantized_gradients", "refused"},
    {zero3("offload_optimizer: {device: \"none\", ratio: 0.5}"),
     "zero_optimization.offload_optimizer.ratio", "ignored"},
    {zero3("stage3_gather_fp16_weights_on_model_save: perhaps\n"),
     "zero_optimization.stage3_gather_fp16_weights_on_model_save", "refused"},
};

const std::vector<JudgedKey> kAccelerateKeys = {
    {fsdp("fsdp_version: 3"), "fsdp_config.fsdp_version", "refused"},
    {fsdp("fsdp_offload_params: maybe"), "fsdp_config.fsdp_offload_params", "refused"},
    {fsdp("fsdp_backward_prefetch: 2"), "fsdp_config.fsdp_backward_prefetch",
     "mapped parallel.backward_prefetch=\"post\""},
    {fsdp("fsdp_sharding_strategy: 1.5"), "fsdp_config.fsdp_sharding_strategy", "refused"},
    {"distributed_type: NO\nnum_machines: 0\n", "num_machines", "refused"},
    {"distributed_type: NO\nfp16: true\n", "fp16", "mapped train.precision=\"fp16\""},
    {"distributed_type: NO\nmain_process_port: auto\n", "main_process_port", "refused"},
    {"distributed_type: NO\nmain_process_ip: fe80::1\nmain_process_port: 5\n", "main_process_ip",
     "mapped --master=\"[fe80::1]:5\""},
    {"distributed_type: NO\ncompute_environment: 0\n", "compute_environment", "refused"},
    {"distributed_type: NO\ndynamo_config: INDUCTOR\n", "dynamo_config", "refused"},
};

const std::vector<JudgedKey> kOtherKeys = {
    {arguments("\"per_gpu_train_batch_size\": 16"), "per_gpu_train_batch_size", "refused"},
    {arguments("\"split_batches\": true"), "split_batches", "refused"},
    {arguments("\"lr_scheduler_type\": \"cosine_with_min_lr\""), "lr_scheduler_type", "refused"},
    {arguments("\"bf16\": \"maybe\""), "bf16", "refused"},
    {arguments("\"max_grad_norm\": null"), "max_grad_norm", "mapped optim.clip=0.0"},
    {arguments("\"fsdp\": \"full_shard\", \"fsdp_config\": {\"reshard_after_forward\": false}"),
     "fsdp", "mapped parallel.strategy=\"shard_grad_op\""},
    {arguments("\"fsdp\": true, \"fsdp_config\": {\"unknown\": 5}"), "fsdp_config.unknown",
     "unknown"},
    {arguments("\"accelerator_config\": {\"gradient_accumulation_kwargs\": {\"num_steps\": 4}}"),
     "accelerator_config.gradient_accumulation_kwargs.num_steps", "refused"},
    {titan("dtype = \"bfloat16\"\n"), "training.dtype", "refused"},
    {titan("[parallelism]\nfsdp_reshard_after_forward = \"never\"\n"),
     "parallelism.fsdp_reshard_after_forward", "mapped parallel.strategy=\"shard_grad_op\""},
    {titan("[parallelism]\ndata_parallel_replicate_degree = 4\n"),
     "parallelism.data_parallel_replicate_degree",
     "mapped parallel.strategy=\"hybrid_shard\" parallel.shard_size=2"},
    {titan("[parallelism]\ndata_parallel_shard_degree = 1\n"),
     "parallelism.data_parallel_shard_degree", "refused"},
    {titan("[parallelism]\ndata_parallel_shard_degree = 2.5\n"),
     "parallelism.data_parallel_shard_degree", "refused"},
    {titan("[checkpoint]\nload_step = 5\n"), "checkpoint.load_step", "refused"},
    {titan("[comm]\ninit_timeout_seconds = -1\n"), "comm.init_timeout_seconds", "refused"},
    {"./train_gpt2cu -pn 0", "-pn", "refused"},
    {"./train_gpt2cu -t 0", "-t", "refused"},
};

}  // namespace

TEST_CASE("a key has the meaning that its program gives it, or is refused", "[imports]") {
  std::vector<JudgedKey> rows = kDeepSpeedKeys;
  rows.insert(rows.end(), kAccelerateKeys.begin(), kAccelerateKeys.end());
  rows.insert(rows.end(), kOtherKeys.begin(), kOtherKeys.end());
  for (const JudgedKey& row : rows) {
    CAPTURE(row.text);
    const ImportResult result = import_text(row.text);
    CAPTURE(result.errors);
    CHECK(verdict_of(result, row.key) == row.verdict);
    CHECK(result.imports() == (row.verdict != "refused" && row.verdict != "unknown"));
  }
}

TEST_CASE("a file that its program does not take is refused as a whole", "[imports]") {
  const auto [text, complaint] = GENERATE(table<std::string, std::string>(
      {{"num_processes: 2\n", "distributed_type: is missing"},
       {"distributed_type: NO\n---\ndistributed_type: FSDP\n", "holds more than one document"},
       {"distributed_type: !!python/object:os.system x\n", "is none of YAML's own"},
       {deepspeed("\"gradient_clipping\": NaN"), "NaN is no number in JSON"},
       {"./train_gpt2cu -b 4 -b 8", "-b: occurs twice"},
       {arguments("\"weight_decay\": 0.1, \"deepspeed\": {\"train_micro_batch_size_per_gpu\": 8, "
                  "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\"}}}"),
        "optim.weight_decay is 0.0 there, its default, and 0.1 here"}}));
  const ImportResult result = import_text(text);
  CAPTURE(text, result.errors);
  CHECK(std::ranges::any_of(result.errors, [&, wanted = complaint](const std::string& error) {
    return error.find(wanted) != std::string::npos;
  }));
}

}  // namespace gxp
