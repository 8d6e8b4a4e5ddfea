#include "lib/config/other_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lib/config/settings.h"

namespace gxp {
namespace {

struct OtherName {
  std::string_view theirs, ours;
};

// Of DeepSpeed, accelerate, torchtitan, transformers, Megatron-LM, nanoGPT.
constexpr OtherName kKeys[] = {
    {"learning_rate", "optim.lr"},
    {"max_lr", "optim.lr"},
    {"adam_beta1", "optim.beta1"},
    {"adam_beta2", "optim.beta2"},
    {"betas", "optim.beta1 and optim.beta2"},
    {"adam_epsilon", "optim.eps"},
    {"epsilon", "optim.eps"},
    {"optimizer", "optim.name"},
    {"optimizer_type", "optim.name"},
    {"type", "optim.name or lr_schedule.name"},
    {"max_grad_norm", "optim.clip"},
    {"max_norm", "optim.clip"},
    {"gradient_clipping", "optim.clip"},
    {"grad_clip", "optim.clip"},
    {"clip_grad", "optim.clip"},
    {"adam_eps", "optim.eps"},
    {"lr_scheduler_type", "lr_schedule.name"},
    {"scheduler", "lr_schedule.name"},
    {"lr_decay_style", "lr_schedule.name"},
    {"warmup_iters", "lr_schedule.warmup_steps"},
    {"lr_warmup_iters", "lr_schedule.warmup_steps"},
    {"warmup_num_steps", "lr_schedule.warmup_steps"},
    {"total_num_steps", "lr_schedule.total_steps"},
    {"lr_decay_iters", "lr_schedule.total_steps"},
    {"lr_min", "lr_schedule.min_lr"},
    {"max_steps", "train.steps"},
    {"max_iters", "train.steps"},
    {"train_iters", "train.steps"},
    {"num_steps", "train.steps"},
    {"epochs", "train.steps, which counts steps"},
    {"num_train_epochs", "train.steps, which counts steps"},
    {"batch_size", "train.micro_batch"},
    {"local_batch_size", "train.micro_batch"},
    {"micro_batch_size", "train.micro_batch"},
    {"per_device_train_batch_size", "train.micro_batch"},
    {"train_micro_batch_size_per_gpu", "train.micro_batch"},
    {"global_batch_size", "train.global_batch"},
    {"train_batch_size", "train.global_batch"},
    {"gradient_accumulation_steps", "train.grad_accum"},
    {"grad_accum_steps", "train.grad_accum"},
    {"accumulate", "train.grad_accum"},
    {"mixed_precision", "train.precision"},
    {"dtype", "train.precision"},
    {"bf16", "train.precision"},
    {"fp16", "train.precision"},
    {"gradient_checkpointing", "train.recompute"},
    {"activation_checkpointing", "train.recompute"},
    {"recompute_activations", "train.recompute"},
    {"recompute_granularity", "train.recompute"},
    {"logging_steps", "train.log_every"},
    {"log_interval", "train.log_every"},
    {"eval_steps", "train.valid_every"},
    {"eval_interval", "train.valid_every"},
    {"eval_iters", "train.valid_batches"},
    {"use_cpu", "train.device"},
    {"output_dir", "checkpoint.dir"},
    {"out_dir", "checkpoint.dir"},
    {"save", "checkpoint.dir"},
    {"save_steps", "checkpoint.every"},
    {"interval", "checkpoint.every"},
    {"save_interval", "checkpoint.every"},
    {"save_total_limit", "checkpoint.keep"},
    {"dataset", "data.train"},
    {"dataset_path", "data.train"},
    {"train_file", "data.train"},
    {"data_path", "data.train"},
    {"validation_file", "data.valid"},
    {"seq_len", "data.sequence"},
    {"seq_length", "data.sequence"},
    {"sequence_length", "data.sequence"},
    {"max_seq_length", "data.sequence"},
    {"block_size", "model.context"},
    {"n_ctx", "model.context"},
    {"max_position_embeddings", "model.context"},
    {"n_layer", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"n_head", "model.heads"},
    {"num_heads", "model.heads"},
    {"num_attention_heads", "model.heads"},
    {"num_key_value_heads", "model.kv_heads"},
    {"num_query_groups", "model.kv_heads"},
    {"n_kv_heads", "model.kv_heads"},
    {"n_embd", "model.hidden"},
    {"d_model", "model.hidden"},
    {"hidden_size", "model.hidden"},
    {"intermediate_size", "model.mlp_hidden"},
    {"ffn_hidden_size", "model.mlp_hidden"},
    {"head_dim", "model.head_size"},
    {"model_type", "model.family"},
    {"model_name_or_path", "model.init"},
    {"model_name", "model.init"},
    {"pretrained", "model.init"},
    {"stage", "parallel.strategy"},
    {"zero_stage", "parallel.strategy"},
    {"sharding_strategy", "parallel.strategy"},
    {"fsdp", "parallel.strategy"},
    {"use_fsdp", "parallel.strategy"},
    {"use_distributed_optimizer", "parallel.strategy"},
    {"ddp_bucket_cap_mb", "parallel.bucket_bytes"},
    {"reduce_bucket_size", "parallel.bucket_bytes"},
    {"lora_r", "lora.rank"},
    {"lora_alpha", "lora.alpha"},
    {"target_modules", "lora.targets"},
    {"backend", "comm.engine"},
};

constexpr OtherName kSections[] = {
    {"optimizer", "optim"},
    {"optimiser", "optim"},
    {"adam", "optim"},
    {"scheduler", "lr_schedule"},
    {"lr_scheduler", "lr_schedule"},
    {"schedule", "lr_schedule"},
    {"training", "train"},
    {"trainer", "train"},
    {"dataset", "data"},
    {"datasets", "data"},
    {"parallelism", "parallel"},
    {"distributed", "parallel"},
    {"zero_optimization", "parallel"},
    {"fsdp", "parallel"},
    {"checkpoints", "checkpoint"},
    {"checkpointing", "checkpoint"},
    {"offload_optimizer", "offload"},
    {"peft", "lora"},
    {"communication", "comm"},
    {"network", "model"},
};

template <class Table>
std::string_view ours_of(const Table& table, std::string_view theirs) {
  const auto* const row = std::ranges::find(table, theirs, &OtherName::theirs);
  return row == std::end(table) ? "" : row->ours;
}

// The only setting with this key; "" if there is none or another.
std::string only_setting(std::string_view key) {
  std::string name;
  for (const Setting& setting : settings()) {
    if (setting.key != key) continue;
    if (!name.empty()) return "";
    name = setting.name();
  }
  return name;
}

}  // namespace

std::string setting_called(std::string_view key) {
  if (const std::string name = only_setting(key); !name.empty())
    return fmt::format("; did you mean '{}'?", name);
  const std::string_view ours = ours_of(kKeys, key);
  return ours.empty() ? "" : fmt::format("; gxp calls it {}", ours);
}

std::string section_called(std::string_view section) {
  const std::string_view ours = ours_of(kSections, section);
  return ours.empty() ? "" : fmt::format("; gxp calls it [{}]", ours);
}

std::string setting_for_option(std::string_view option) {
  std::string key(option);
  std::ranges::replace(key, '-', '_');
  if (const std::string name = only_setting(key); !name.empty()) return name;
  const std::string_view ours = ours_of(kKeys, key);
  return ours.find(' ') == std::string_view::npos ? std::string(ours) : "";
}

}  // namespace gxp
