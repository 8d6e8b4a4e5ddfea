// torchtitan's TOML, of all ages. Source: torchtitan/config/job_config.py, up to the versions of
// 2025, after which the configurations are Python.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/text/ascii.h"
#include "lib/tools/imports/programs.h"

namespace gxp::torchtitan {
namespace {

constexpr std::string_view kRecipe = "gxp has one recipe";
constexpr std::string_view kOff = "with a degree that is off";

// The number of ranks that split the batch.
std::optional<int64_t> ranks_of(Importing& in) {
  return in.request().ranks > 0 ? std::optional<int64_t>(in.request().ranks) : std::nullopt;
}

void take_global_batch(Importing& in, const KeyRule&) {
  const auto total = to_number(in.value());
  const auto ranks = ranks_of(in);
  const double local = in.number("training.local_batch_size").value_or(8);
  if (total && *total < 0) {
    in.map({{"train.grad_accum", int64_t{1}}}, "-1: no accumulation");
  } else if (!total || !ranks) {
    in.refuse(total ? "is split over the ranks, whose number is not known: give --nproc"
                    : "a number of rows was expected");
  } else {
    const double accumulation = *total / (local * double(*ranks));
    if (accumulation >= 1 && std::floor(accumulation) == accumulation && accumulation < 2e9)
      in.map({{"train.grad_accum", int64_t(accumulation)}});
    else
      in.refuse(fmt::format("is no multiple of local_batch_size {} x {} ranks", local, *ranks));
  }
}

void take_dataset(Importing& in, const KeyRule&) {
  if (in.has("training.dataset_path"))
    in.ignore("dataset_path is given");
  else
    in.refuse("a named download: give data.train");
}

// 0 for what is no degree.
int64_t degree(const Importing& in, std::string_view key, int64_t preset) {
  if (!in.has(key)) return preset;
  const double number = in.number(key).value_or(0);
  return std::fabs(number) < 1e9 && std::floor(number) == number ? int64_t(number) : 0;
}

void take_shard_degree(Importing& in, const KeyRule&) {
  const int64_t copies = degree(in, "parallelism.data_parallel_replicate_degree", 1);
  const auto ranks = ranks_of(in);
  int64_t shards = degree(in, "parallelism.data_parallel_shard_degree", -1);
  const bool never = in.word("parallelism.fsdp_reshard_after_forward") == "never";
  const std::string whole = never ? "shard_grad_op" : "full_shard";
  if (copies < 1 || (shards < 1 && shards != -1)) {
    in.refuse("degrees are 1 or more, or -1 for all other ranks");
  } else if (shards == 1 && (!ranks || copies == *ranks)) {
    in.map({{"parallel.strategy", "ddp"}});
  } else if (copies == 1 && (shards == -1 || !ranks || shards == *ranks)) {
    in.map({{"parallel.strategy", whole}});
  } else if (shards == -1 && !ranks) {
    in.refuse("needs the number of ranks: give --nproc");
  } else {
    if (shards == -1) shards = *ranks / copies;
    if (ranks && shards * copies != *ranks)
      in.refuse(fmt::format("shards {} x copies {} are not {} ranks", shards, copies, *ranks));
    else if (shards == 1)
      in.map({{"parallel.strategy", "ddp"}});
    else
      in.map({{"parallel.strategy", never ? "hybrid_shard_zero2" : "hybrid_shard"},
              {"parallel.shard_size", shards}});
  }
}

constexpr std::string_view kShards = "parallelism.data_parallel_shard_degree";
constexpr std::string_view kCopies = "parallelism.data_parallel_replicate_degree";

// Alone it decides, too: the shards are all other ranks.
void take_copies(Importing& in, const KeyRule& rule) {
  if (in.has(kShards))
    in.ignore("see data_parallel_shard_degree");
  else
    take_shard_degree(in, rule);
}

void take_stored_type(Importing& in, const KeyRule&) {
  if (in.value() == "float32")
    in.ignore("as gxp");
  else
    in.refuse("gxp's parameters are float32: see mixed_precision_param");
}

void take_load_step(Importing& in, const KeyRule&) {
  if (to_number(in.value()) == -1)
    in.ignore("-1: the newest, as gxp");
  else
    in.refuse("gxp train --resume goes on from the newest checkpoint");
}

// torchtitan's own rule for a warm-up that is longer than the run.
void take_warmup(Importing& in, const KeyRule& rule) {
  const auto steps = in.number("training.steps");
  const auto warmup = to_number(in.value());
  in.take_value(rule.setting, steps && warmup && *warmup > *steps
                                  ? "torchtitan lowers it to training.steps: do so"
                                  : rule.note);
}

void take_resharding(Importing& in, const KeyRule&) {
  const std::string word = to_lower_words(in.value());
  if (word == "never" && !in.has(kShards) && !in.has(kCopies))
    in.map({{"parallel.strategy", "shard_grad_op"}});
  else if (word == "default" || word == "always" || word == "never")
    in.ignore("with data_parallel_shard_degree");
  else
    in.refuse("default, always or never was expected");
}

void take_offload(Importing& in, const KeyRule&) {
  if (in.is_switched_on())
    in.map({{"offload.optimizer", "memory"}, {"offload.parameters", "memory"}});
}

void take_type(Importing& in, const KeyRule& rule) {
  const std::string type = to_lower_words(in.value());
  const bool is_param = rule.setting == "train.precision";
  if (type == "float32")
    in.map({{std::string(rule.setting), "fp32"}});
  else if (type == "bfloat16" && is_param)
    in.map({{std::string(rule.setting), "bf16"}});
  else
    in.refuse(is_param ? "bfloat16 or float32 was expected" : "float32 was expected");
}

bool saves(const Importing& in) {
  return in.is_on(in.has("checkpoint.enable") ? "checkpoint.enable"
                                              : "checkpoint.enable_checkpoint");
}

void take_saving(Importing& in, const KeyRule&) {
  const std::string folder =
      in.has("checkpoint.folder") ? to_words(*in.find("checkpoint.folder")) : "checkpoint";
  if (in.is_switched_on()) in.map({{"checkpoint.dir", folder}});
}

void take_if_saved(Importing& in, const KeyRule& rule) {
  if (saves(in))
    in.take_value(rule.setting);
  else
    in.ignore("off");
}

void take_export(Importing& in, const KeyRule&) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTypes = {
      {{"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}}};
  if (!in.is_on("checkpoint.last_save_in_hf") || !saves(in)) {
    in.ignore("with last_save_in_hf");
    return;
  }
  for (const auto& [theirs, ours] : kTypes) {
    if (in.value() != std::string(theirs)) continue;
    in.change({{"checkpoint.export", std::string(ours)}}, "gxp exports with every checkpoint");
    return;
  }
  in.refuse("float32, bfloat16 or float16 was expected");
}

void take_async(Importing& in, const KeyRule&) {
  const std::string mode = to_lower_words(in.value());
  if (mode == "disabled" || mode == "async" || mode == "async_with_pinned_mem")
    in.map({{"checkpoint.async", mode != "disabled"}});
  else
    in.refuse("disabled, async or async_with_pinned_mem was expected");
}

void take_recompute(Importing& in, const KeyRule&) {
  const std::string mode = to_lower_words(in.value());
  if (mode == "full")
    in.map({{"train.recompute", "full"}}, "selective is not the same choice of tensors");
  else if (mode == "selective")
    in.change(
        {{"train.recompute", "selective"}},
        "gxp's selective keeps attention's output; the option op or a layer count is not there");
  else if (mode == "none")
    in.map({{"train.recompute", "none"}});
  else
    in.refuse("none, selective or full was expected");
}

bool validates(const Importing& in) {
  return in.is_on(in.has("validation.enable") ? "validation.enable" : "validation.enabled");
}

void take_validation(Importing& in, const KeyRule& rule) {
  if (rule.setting == "train.valid_batches" && to_number(in.value()) == -1)
    in.change({}, "-1: the whole set; give train.valid_batches");
  else if (validates(in))
    in.take_value(rule.setting);
  else
    in.ignore("off");
}

void take_steps_or_log(Importing& in, const KeyRule& rule) {
  const auto steps = to_number(in.value());
  if (steps && *steps >= 1)
    in.take_value(rule.setting);
  else
    in.ignore(kLogging);
}

constexpr KeyRule kRules[] = {
    {"job.custom_config_module", act::refuse_unless_off, "", "gxp runs no Python"},
    {"job.*", act::ignore, "", kLogging},
    {"profiling.*", act::ignore, "", kLogging},
    {"metrics.log_freq", take_steps_or_log, "train.log_every"},
    {"metrics.*", act::ignore, "", kLogging},
    {"debug.seed", act::take, "train.seed"},
    {"debug.deterministic", act::ignore, "", kAlways},
    {"debug.*", act::ignore, "", kMeaningless},
    {"training.warmup_steps", take_warmup, "lr_schedule.warmup_steps", kOldSpelling},
    {"lr_scheduler.warmup_steps", take_warmup, "lr_schedule.warmup_steps"},
    {"training.local_batch_size", act::take, "train.micro_batch"},
    {"training.global_batch_size", take_global_batch},
    {"training.seq_len", act::take, "data.sequence"},
    {"training.max_norm", act::take, "optim.clip"},
    {"training.steps", act::take, "train.steps"},
    {"training.seed", act::take, "train.seed"},
    {"training.dataset", take_dataset},
    {"training.dataset_path", act::take, "data.train"},
    {"training.deterministic", act::ignore, "", kAlways},
    {"training.dtype", take_stored_type},
    {"training.enable_cpu_offload", take_offload},
    {"training.mixed_precision_param", take_type, "train.precision"},
    {"training.mixed_precision_reduce", take_type, "parallel.reduce_dtype"},
    {"training.gc_freq", act::ignore, "", kMeaningless},
    {"training.gc_debug", act::ignore, "", kMeaningless},
    {"training.compile", act::ignore, "", kNoCompiler},
    {"training.debug_moe_force_load_balance", act::ignore, "", "no experts in gxp"},
    {"parallelism.data_parallel_replicate_degree", take_copies},
    {"parallelism.data_parallel_shard_degree", take_shard_degree},
    {"parallelism.fsdp_reshard_after_forward", take_resharding},
    {"parallelism.tensor_parallel_degree", act::refuse_unless_one, "", "no tensor parallelism"},
    {"parallelism.pipeline_parallel_degree", act::refuse_unless_one, "", "no pipeline parallelism"},
    {"parallelism.context_parallel_degree", act::refuse_unless_one, "", "no context parallelism"},
    {"parallelism.expert_parallel_degree", act::refuse_unless_one, "", "no expert parallelism"},
    {"parallelism.expert_tensor_parallel_degree", act::refuse_unless_one, "",
     "no expert parallelism"},
    {"parallelism.pipeline_parallel_*", act::ignore, "", kOff},
    {"parallelism.context_parallel_*", act::ignore, "", kOff},
    {"parallelism.enable_async_tensor_parallel", act::ignore, "", kOff},
    {"parallelism.disable_loss_parallel", act::ignore, "", kOff},
    {"parallelism.enable_loss_parallel", act::ignore, "", kOff},
    {"parallelism.module_fqns_per_model_part", act::ignore, "", kOff},
    {"parallelism.enable_compiled_autograd", act::ignore, "", kNoCompiler},
    {"checkpoint.enable", take_saving},
    {"checkpoint.enable_checkpoint", take_saving},
    {"checkpoint.folder", act::ignore, "", "with enable"},
    {"checkpoint.interval", take_if_saved, "checkpoint.every"},
    {"checkpoint.keep_latest_k", take_if_saved, "checkpoint.keep"},
    {"checkpoint.load_step", take_load_step},
    {"checkpoint.interval_type", act::ignore, "", "gxp counts steps"},
    {"checkpoint.async_mode", take_async},
    {"checkpoint.export_dtype", take_export},
    {"checkpoint.last_save_in_hf", act::ignore, "", "with export_dtype"},
    {"checkpoint.last_save_model_only", act::ignore, "", "a gxp checkpoint is always whole"},
    {"checkpoint.model_weights_only", act::ignore, "", "a gxp checkpoint is always whole"},
    {"checkpoint.initial_load_path", act::refuse_unless_off, "", "give model.init"},
    {"checkpoint.initial_load_in_hf", act::refuse_unless_off, "", "give model.init"},
    {"checkpoint.*", act::ignore, "", kMeaningless},
    {"compile.*", act::ignore, "", kNoCompiler},
    {"activation_checkpoint.mode", take_recompute},
    {"activation_checkpoint.selective_ac_option", act::ignore, "", "with mode"},
    {"activation_checkpoint.*", act::ignore, "", "with mode"},
    {"validation.enable", act::ignore, "", "with freq"},
    {"validation.enabled", act::ignore, "", "with freq"},
    {"validation.dataset", act::ignore, "", "a named download: give data.valid"},
    {"validation.dataset_path", take_validation, "data.valid"},
    {"validation.freq", take_validation, "train.valid_every"},
    {"validation.steps", take_validation, "train.valid_batches"},
    {"validation.*", act::ignore, "", "gxp validates with the rows of training"},
    {"float8.*", act::ignore, "", kRecipe},
    {"quantize.*", act::ignore, "", kRecipe},
    {"mx.*", act::ignore, "", kRecipe},
    {"comm.init_timeout_seconds", act::take, "--join-timeout"},
    {"comm.train_timeout_seconds", act::take, "comm.timeout_s"},
    {"comm.trace_buf_size", act::ignore, "", "flight_recorder"},
    {"comm.*", act::ignore, "", "see comm.flight_recorder"},
    {"fault_tolerance.enable", act::refuse_unless_off, "",
     "a lost rank ends the run, and --resume goes on"},
    {"fault_tolerance.*", act::ignore, "", "with enable"},
    {"memory_estimation.*", act::ignore, "", "gxp memcalc"},
    {"experimental.custom_import",
     [](Importing& in, const KeyRule&) {
       if (is_false(in.value()))
         in.ignore("empty");
       else
         in.refuse("gxp runs no Python");
     }},
    {"experimental.custom_args_module", act::refuse_unless_off, "", "gxp runs no Python"},
    {"experimental.enable_async_tensor_parallel", act::ignore, "", kOff},
    {"experimental.enable_compiled_autograd", act::ignore, "", kNoCompiler},
    {"experimental.pipeline_parallel_degree", act::refuse_unless_one, "",
     "no pipeline parallelism"},
    {"experimental.context_parallel_degree", act::refuse_unless_one, "", "no context parallelism"},
    {"experimental.pipeline_parallel_*", act::ignore, "", kOff},
    {"experimental.context_parallel_*", act::ignore, "", kOff},
};

// Names of older files, which are read as those of now and reported as they are written.
struct OldName {
  std::string_view before, now;
};
constexpr std::array kOldNames = {
    OldName{"training.batch_size", "training.local_batch_size"},
    OldName{"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
    OldName{"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    OldName{"training.data_parallel_replicate_degree",
            "parallelism.data_parallel_replicate_degree"},
    OldName{"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    OldName{"training.enable_loss_parallel", "parallelism.enable_loss_parallel"},
    OldName{"training.fsdp_reshard_after_forward", "parallelism.fsdp_reshard_after_forward"},
};

void add_defaults(Importing& in) {
  in.set_default("optim.name", "adamw");
  in.set_default("optim.decay_vectors", true);
  in.set_default("optim.lr", 8e-4);
  in.set_default("optim.beta1", 0.9);
  in.set_default("optim.beta2", 0.95);
  in.set_default("optim.eps", 1e-8);
  in.set_default("optim.weight_decay", 0.1);
  in.set_default("optim.clip", 1.0);
  in.set_default("train.precision", "bf16");
  in.set_default("lr_schedule.name", "linear");
  in.set_default("lr_schedule.warmup_steps", int64_t{200});
  in.set_default("train.micro_batch", int64_t{8});
  in.set_default("train.grad_accum", int64_t{1});
  in.set_default("data.sequence", int64_t{2048});
  in.set_default("train.steps", int64_t{10000});
  in.set_default("parallel.strategy", "full_shard");
  in.set_default("train.recompute", "selective");
  in.set_default("train.log_every", int64_t{10});
  if (saves(in)) {
    in.set_default("checkpoint.every", int64_t{500});
    in.set_default("checkpoint.keep", int64_t{10});
  }
}

}  // namespace

std::span<const KeyRule> rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(std::begin(kRules), std::end(kRules));
    all.insert(all.end(), model_rules().begin(), model_rules().end());
    return all;
  }();
  return kAll;
}

void judge(Importing& in) {
  for (const OldName& name : kOldNames) in.rename(name.before, std::string(name.now));
  in.judge(rules(), false);
  for (const OldName& name : kOldNames) in.report_as(name.now, name.before);
  add_defaults(in);
}

}  // namespace gxp::torchtitan
