// The arguments of Hugging Face's Trainer as JSON. Source: transformers 5.24.0, training_args.py,
// optimization.py; names of version 4 where they differ.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "lib/base/text/ascii.h"
#include "lib/tools/imports/programs.h"

namespace gxp::trainer {
namespace {

constexpr std::string_view kHub = "no uploads";

void take_precision(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{"train.precision", std::string(rule.setting)}}, rule.note);
}

void take_bucket(Importing& in, const KeyRule& rule) {
  const auto size = to_number(in.value());
  if (in.value().is_null())
    in.ignore("not set");
  else if (!size || *size <= 0 || *size > 1e6)
    in.refuse("MiB were expected");
  else
    in.map({{std::string(rule.setting), int64_t(*size * (1 << 20))}});
}

void take_order(Importing& in, const KeyRule& rule) {
  const std::string word = to_words(in.value());
  if (word == "random")
    in.map({{std::string(rule.setting), "shuffled"}});
  else if (word == "sequential")
    in.map({{std::string(rule.setting), "sequential"}});
  else
    in.refuse("no grouping by length");
}

void take_recompute(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{std::string(rule.setting), "full"}});
}

void take_cpu(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{std::string(rule.setting), "cpu"}});
}

void take_resume(Importing& in, const KeyRule& rule) {
  if (is_false(in.value()))
    in.ignore("off");
  else if (in.value() == true)
    in.map({{std::string(rule.setting), true}});
  else
    in.refuse("convert it: gxp convert-ckpt");
}

void take_flag(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{std::string(rule.setting), true}});
}

std::vector<std::string> words_of_fsdp(const SourceTree& value) {
  std::vector<std::string> words;
  if (value == true) return {"full_shard"};
  std::vector<std::string> parts;
  if (value.is_string()) parts.push_back(value.get<std::string>());
  for (size_t i = 0; value.is_array() && i < value.size(); ++i) parts.push_back(to_words(value[i]));
  for (const std::string& part : parts) {
    std::istringstream stream(part);
    for (std::string word; stream >> word;) words.push_back(lower_case(word));
  }
  return words;
}

// fsdp_config's reshard_after_forward, false.
bool keeps_gathered(const Importing& in) {
  const SourceTree* value = in.find("fsdp_config.reshard_after_forward");
  if (value == nullptr) value = in.find("fsdp_config.fsdp_reshard_after_forward");
  return value != nullptr && is_false(*value);
}

void take_fsdp(Importing& in, const KeyRule&) {
  if (is_false(in.value())) {
    in.ignore("off");
    return;
  }
  std::vector<ImportedSetting> settings;
  for (const std::string& word : words_of_fsdp(in.value())) {
    if (word == "offload") {
      settings.insert(settings.end(),
                      {{"offload.optimizer", "memory"}, {"offload.parameters", "memory"}});
    } else if (word == "full_shard" && keeps_gathered(in)) {
      settings.emplace_back("parallel.strategy", "shard_grad_op");
    } else if (word == "full_shard" || word == "shard_grad_op" || word == "hybrid_shard" ||
               word == "no_shard") {
      settings.emplace_back("parallel.strategy", word);
    } else if (word == "hybrid_shard_zero2") {
      settings.emplace_back("parallel.strategy", word);
    } else if (word != "auto_wrap") {
      in.refuse(
          fmt::format("'{}' is none of full_shard, shard_grad_op, hybrid_shard, offload, "
                      "auto_wrap",
                      word));
      return;
    }
  }
  if (settings.empty())
    in.refuse("it names no strategy");
  else
    in.map(std::move(settings),
           "words: full_shard, shard_grad_op, hybrid_shard, offload, auto_wrap");
}

bool is_sharded(const Importing& in) {
  const SourceTree* value = in.find("fsdp");
  return value != nullptr && !is_false(*value);
}

// Whether accelerate knows it, or transformers alone.
bool is_fsdp_key(std::string_view name) {
  const auto rules = accelerate::fsdp_rules();
  return std::ranges::find(rules, name, &KeyRule::key) != rules.end() ||
         name.starts_with("fsdp_config.xla");
}

void take_wrap_size(Importing& in, std::string_view note) {
  const ConvertedValue size = convert_to("parallel.wrap_min_params", in.value());
  if (size.value)
    in.change({{"parallel.wrap", "size"}, {"parallel.wrap_min_params", *size.value}}, note);
  else
    in.refuse(size.problem);
}

// fsdp_config: what is as gxp does it is ignored.
void take_fsdp_key(Importing& in, const KeyRule& rule) {
  const std::string_view note = "the keys of accelerate's fsdp_config without their prefix";
  const std::string key = in.name().substr(in.name().find('.') + 1);
  const std::string word = to_lower_words(in.value());
  if (!is_sharded(in)) {
    in.ignore("fsdp is off");
  } else if (!is_fsdp_key(in.name())) {
    in.unknown("unknown key", true);
  } else if (key.ends_with("reshard_after_forward")) {
    in.ignore("decides the strategy, with fsdp");
  } else if (key.ends_with("offload_params") && is_true(in.value())) {
    in.change({{"offload.optimizer", "memory"}, {"offload.parameters", "memory"}}, note);
  } else if (key.ends_with("state_dict_type") && word == "full_state_dict") {
    in.change({{"checkpoint.layout", "full"}}, note);
  } else if (key.ends_with("backward_prefetch") && word == "backward_post") {
    in.change({{"parallel.backward_prefetch", "post"}}, note);
  } else if (key.ends_with("backward_prefetch") && word.starts_with("no")) {
    in.change({{"parallel.backward_prefetch", "none"}}, note);
  } else if (key.ends_with("forward_prefetch")) {
    in.take_value("parallel.forward_prefetch", note, true);
  } else if (key.ends_with("min_num_params") && !is_false(in.value())) {
    take_wrap_size(in, note);
  } else if (key.ends_with("activation_checkpointing") && is_true(in.value())) {
    in.change({{"train.recompute", "full"}}, note);
  } else if (key.starts_with("xla") && !is_false(in.value())) {
    in.refuse("for TPUs");
  } else {
    in.ignore(rule.note);
  }
}

void take_deepspeed(Importing& in, const KeyRule&) {
  if (is_false(in.value()))
    in.ignore("off");
  else if (in.value().is_string())
    in.map({}, "read, too: its auto values come from here");
  else
    in.refuse("a path or a block was expected");
}

constexpr KeyRule kRules[] = {
    {"output_dir", act::take, "checkpoint.dir"},
    {"overwrite_output_dir", take_flag, "--overwrite"},
    {"per_device_train_batch_size", act::take, "train.micro_batch"},
    {"per_gpu_train_batch_size", act::refuse_unless_off, "",
     "it won over per_device_train_batch_size, and is gone: set that"},
    {"split_batches", act::refuse_unless_off, "", "gxp's batch is that of one rank"},
    {"gradient_accumulation_steps", act::take, "train.grad_accum"},
    {"optim_args", act::refuse_unless_off, "", "give them in [optim]"},
    {"optim_target_modules", act::refuse_unless_off, "", "no GaLore"},
    {"adafactor", act::refuse_unless_off, "", "gxp's adafactor has other defaults: set [optim]"},
    {"max_grad_norm",
     [](Importing& in, const KeyRule& rule) {
       if (in.value().is_null())
         in.map({{std::string(rule.setting), 0.0}}, "null: no clipping");
       else
         in.take_value(rule.setting);
     },
     "optim.clip"},
    {"label_smoothing_factor",
     [](Importing& in, const KeyRule&) {
       if (is_false(in.value()))
         in.ignore("0");
       else
         in.refuse("no label smoothing");
     }},
    {"neftune_noise_alpha", act::refuse_unless_off, "", "no NEFTune"},
    {"bf16", take_precision, "bf16", "autocast there: float32 weights, bf16 products"},
    {"fp16", take_precision, "fp16", "autocast and a GradScaler there"},
    {"bf16_full_eval", act::ignore, "", "gxp validates in train.precision"},
    {"fp16_full_eval", act::ignore, "", "gxp validates in train.precision"},
    {"fp16_opt_level", act::ignore, "", kMeaningless},
    {"fp16_backend", act::ignore, "", kMeaningless},
    {"half_precision_backend", act::ignore, "", kMeaningless},
    {"tf32", act::ignore, "", kMeaningless},
    {"average_tokens_across_devices", act::ignore, "", "gxp divides by the tokens of all ranks"},
    {"gradient_checkpointing", take_recompute, "train.recompute"},
    {"gradient_checkpointing_kwargs.*", act::ignore, "", kMeaningless},
    {"activation_checkpointing", take_recompute, "train.recompute"},
    {"activation_checkpointing_kwargs.*", act::ignore, "", kMeaningless},
    {"auto_find_batch_size", act::refuse_unless_off, "", "gxp memcalc --solve batch"},
    {"group_by_length", act::refuse_unless_off, "", "no grouping by length"},
    {"train_sampling_strategy", take_order, "data.order"},
    {"length_column_name", act::ignore, "", "no grouping by length"},
    {"seed", act::take, "train.seed"},
    {"data_seed", act::ignore, "", "one seed in gxp"},
    {"full_determinism", act::ignore, "", "gxp always does so"},
    {"logging_strategy", act::ignore, "", "gxp logs every train.log_every steps"},
    {"eval_delay", act::refuse_unless_off, "", "gxp validates from the beginning"},
    {"eval_on_start", act::refuse_unless_off, "", "gxp train --evaluate"},
    {"save_only_model", act::ignore, "", "a gxp checkpoint is always whole"},
    {"save_safetensors", act::ignore, "", "see checkpoint.export"},
    {"load_best_model_at_end", act::refuse_unless_off, "", "no choice of the best"},
    {"metric_for_best_model", act::ignore, "", "with load_best_model_at_end"},
    {"greater_is_better", act::ignore, "", "with load_best_model_at_end"},
    {"resume_from_checkpoint", take_resume, "--resume"},
    {"ignore_data_skip", act::refuse_unless_off, "", "a resumed run goes on in the data"},
    {"push_to_hub", act::refuse_unless_off, "", kHub},
    {"hub_always_push", act::refuse_unless_off, "", kHub},
    {"use_cpu", take_cpu, "train.device"},
    {"no_cuda", take_cpu, "train.device", kOldSpelling},
    {"ddp_bucket_cap_mb", take_bucket, "parallel.bucket_bytes"},
    {"ddp_timeout", act::take, "comm.timeout_s"},
    {"ddp_find_unused_parameters", act::ignore, "", kMeaningless},
    {"ddp_broadcast_buffers", act::ignore, "", kMeaningless},
    {"ddp_static_graph", act::ignore, "", kMeaningless},
    {"ddp_backend", act::ignore, "", "see comm.engine"},
    {"fsdp", take_fsdp},
    {"fsdp_config.*", take_fsdp_key, "",
     "the keys of accelerate's fsdp_config without their prefix"},
    {"fsdp_min_num_params", act::refuse_unless_off, "", "set parallel.wrap_min_params"},
    {"fsdp_transformer_layer_cls_to_wrap", act::ignore, "", "gxp's units are the blocks"},
    {"deepspeed", take_deepspeed},
    {"accelerator_config.split_batches", act::refuse_unless_off, "",
     "gxp's batch is that of one rank"},
    {"accelerator_config.gradient_accumulation_kwargs.num_steps", act::refuse_unless_one, "",
     "set gradient_accumulation_steps"},
    {"accelerator_config.*", act::ignore, "", kMeaningless},
    {"parallelism_config.*", act::refuse_unless_one, "", "tensor, context or sequence parallelism"},
    {"torch_compile", act::ignore, "", kNoCompiler},
    {"torch_compile_backend", act::ignore, "", kNoCompiler},
    {"torch_compile_mode", act::ignore, "", kNoCompiler},
    {"use_liger_kernel", act::ignore, "", "gxp has its own kernels"},
    {"liger_kernel_config.*", act::ignore, "", "gxp has its own kernels"},
    {"debug", act::refuse_unless_off, "", "no such debugging"},
    {"do_train", act::ignore, "", kMeaningless},
    {"do_eval", act::ignore, "", "see data.valid"},
    {"do_predict", act::ignore, "", kMeaningless},
};

// What has no effect on training: prefixes of names.
struct SilentName {
  std::string_view beginning, reason;
};
constexpr std::array kSilent = {
    SilentName{"logging_", kLogging},
    SilentName{"log_", kLogging},
    SilentName{"report_to", kLogging},
    SilentName{"run_name", kLogging},
    SilentName{"disable_tqdm", kLogging},
    SilentName{"project", kLogging},
    SilentName{"trackio_", kLogging},
    SilentName{"hub_", kHub},
    SilentName{"dataloader_", kMeaningless},
    SilentName{"include_", kMeaningless},
    SilentName{"eval_", kMeaningless},
    SilentName{"batch_eval_", kMeaningless},
    SilentName{"per_device_eval_", "gxp validates with train.micro_batch"},
    SilentName{"per_gpu_", kMeaningless},
    SilentName{"prediction_", kMeaningless},
    SilentName{"save_", kMeaningless},
    SilentName{"remove_unused_", kMeaningless},
    SilentName{"label_names", kMeaningless},
    SilentName{"use_cache", kMeaningless},
    SilentName{"torch_empty_cache", kMeaningless},
    SilentName{"torchdynamo", kMeaningless},
    SilentName{"skip_memory_metrics", kMeaningless},
    SilentName{"enable_jit_", kMeaningless},
    SilentName{"restore_callback_", kMeaningless},
    SilentName{"local_rank", "gxp joins by itself"},
    SilentName{"ray_scope", kMeaningless},
    SilentName{"jit_mode_eval", kMeaningless},
    SilentName{"use_ipex", kMeaningless},
    SilentName{"use_mps_device", kMeaningless},
    SilentName{"tpu_", kMeaningless},
    SilentName{"past_index", kMeaningless},
    SilentName{"mp_parameters", kMeaningless},
    SilentName{"dispatch_batches", kMeaningless},
    SilentName{"push_to_hub_", kHub},
    SilentName{"_n_gpu", kMeaningless}};

void add_defaults(Importing& in) {
  const auto preset = [&](const char* key, const char* setting, Value value) {
    if (!in.has(key)) in.set_default(setting, std::move(value));
  };
  preset("per_device_train_batch_size", "train.micro_batch", int64_t{8});
  preset("learning_rate", "optim.lr", 5e-5);
  preset("lr_scheduler_type", "lr_schedule.name", "linear");
  preset("weight_decay", "optim.weight_decay", 0.0);
  preset("adam_beta2", "optim.beta2", 0.999);
  preset("max_grad_norm", "optim.clip", 1.0);
  preset("seed", "train.seed", int64_t{42});
  // What stands for an epoch, too, until its steps are known.
  if (saves(in) || in.word("save_strategy") == "epoch")
    preset("save_steps", "checkpoint.every", int64_t{500});
  preset("logging_steps", "train.log_every", int64_t{500});
  preset("save_total_limit", "checkpoint.keep", int64_t{0});
  if (!counts_steps(in))
    in.set_default("train.steps", std::nullopt,
                   fmt::format("{} epochs", in.number("num_train_epochs").value_or(3)));
  const Value* every = in.result().find("train.log_every");
  if (validates(in) && !in.has("eval_steps") && every != nullptr)
    in.set_default("train.valid_every", *every);
}

// The arguments that "auto" in a DeepSpeed file takes from here.
ImportRequest request_for_deepspeed(Importing& in) {
  ImportRequest request = in.request();
  request.has_schedule = true;
  for (const std::string& name : import_arguments()) {
    const SourceTree* value = in.find(name);
    if (value != nullptr && !value->is_structured()) request.arguments[name] = to_words(*value);
  }
  if (!counts_steps(in)) request.arguments.erase("max_steps");
  return request;
}

}  // namespace

std::span<const KeyRule> rules() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const SilentName& row : kSilent) names.push_back(std::string(row.beginning) + "*");
    return names;
  }();
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(std::begin(kRules), std::end(kRules));
    all.insert(all.end(), step_rules().begin(), step_rules().end());
    for (size_t i = 0; i < kSilent.size(); ++i)
      all.push_back({kNames[i], act::ignore, "", kSilent[i].reason});
    return all;
  }();
  return kAll;
}

void judge(Importing& in) {
  ImportedFile block = in.take_block("deepspeed");
  const SourceTree* path = in.find("deepspeed");
  const std::string file = path != nullptr && path->is_string() ? path->get<std::string>() : "";
  in.judge(rules(), false);
  if (in.is_on("bf16") && in.is_on("fp16")) in.error("fp16 and bf16 are both on");
  if (!file.empty()) block = read_source(in.path_beside(file));
  const bool has_schedule =
      std::ranges::find(block.keys, "scheduler.type", &SourceKey::name) != block.keys.end();
  if (has_schedule && in.has("lr_scheduler_type")) {
    in.yield("lr_schedule.name");
    in.assume("lr_scheduler_type", "the scheduler of the DeepSpeed file wins");
  }
  if (!block.keys.empty() || !block.flaws.empty())
    in.import_deepspeed_file(std::move(block), request_for_deepspeed(in));
  add_defaults(in);
}

}  // namespace gxp::trainer
