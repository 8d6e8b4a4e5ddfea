// DeepSpeed's JSON outside zero_optimization. Source: DeepSpeed 0.19.8, runtime/config.py,
// runtime/precision_config.py, runtime/lr_schedules.py, runtime/engine.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/text/ascii.h"
#include "lib/config/settings.h"
#include "lib/tools/imports/programs.h"

namespace gxp::deepspeed {
namespace {

constexpr std::string_view kBatch = "part of the batch rule";

// optim.name for optimizer.type; "": gxp has none. DeepSpeed takes its own names in any case.
std::string optimizer_of(const Importing& in) {
  const std::string type = in.word("optimizer.type");
  const bool is_plain =
      in.has("optimizer.params.adam_w_mode") && !in.is_on("optimizer.params.adam_w_mode");
  if (type == "adam" && is_plain) return "adam";
  if (type == "adam" || type == "adamw") return "adamw";
  return type == "sgd" || type == "lion" || type == "muon" ? type : "";
}

void take_optimizer(Importing& in, const KeyRule&) {
  const std::string name = optimizer_of(in);
  const std::string group = "one group of all parameters: decay_vectors";
  if (name.empty()) {
    const bool is_text = in.value().is_string();
    in.refuse("gxp has no " + (is_text ? in.value().get<std::string>() : to_line(in.value())));
  } else if (name == "muon") {
    in.change({{"optim.name", name}},
              "lr of the AdamW part becomes optim.adamw_lr_ratio; check which tensors each takes");
  } else {
    const bool is_adam = in.word("optimizer.type") == "adam";
    in.map(
        {{"optim.name", name}, {"optim.decay_vectors", true}},
        is_adam ? "type Adam means decoupled decay unless adam_w_mode is false; " + group : group);
  }
}

// A parameter of the optimizer, which must have it.
void take_parameter(Importing& in, const KeyRule& rule) {
  const Setting& setting = *find_setting("optim", rule.setting.substr(rule.setting.find('.') + 1));
  const std::string optimizer = optimizer_of(in);
  const bool is_adam_only = rule.setting == "optim.eps";
  const bool lacks = !setting.owners.empty() &&
                     std::ranges::find(setting.owners, optimizer) == setting.owners.end();
  if (lacks || (is_adam_only && !optimizer.starts_with("adam")))
    in.refuse("unknown to this optimizer");
  else
    in.take_value(rule.setting, rule.note);
}

void take_betas(Importing& in, const KeyRule&) {
  const SourceTree& value = in.value();
  const bool is_pair = value.is_array() && value.size() == 2;
  const ConvertedValue first = convert_to("optim.beta1", is_pair ? value[0] : value);
  const ConvertedValue second = convert_to("optim.beta2", is_pair ? value[1] : value);
  if (!is_pair || !first.value || !second.value)
    in.refuse("two numbers from 0 to below 1 were expected");
  else
    in.map({{"optim.beta1", *first.value}, {"optim.beta2", *second.value}});
}

void take_adam_rate(Importing& in, const KeyRule&) {
  const auto rate = to_number(in.value());
  const auto shared = in.number("optimizer.params.muon_lr");
  const auto muon = shared ? shared : in.number("optimizer.params.lr");
  if (optimizer_of(in) != "muon" || !rate || !muon || *rate <= 0 || *muon <= 0)
    in.refuse("unknown to this optimizer, or without its lr");
  else
    in.map({{"optim.adamw_lr_ratio", *rate / *muon}}, "a multiple of optim.lr");
}

// The schedules that gxp has: DeepSpeed's name, gxp's, and whether the scheduler has a total.
struct ScheduleRow {
  std::string_view theirs, ours;
  bool has_total, has_rate;
};
constexpr std::array kSchedules = {ScheduleRow{"warmuplr", "warmup", false, true},
                                   ScheduleRow{"warmupdecaylr", "linear", true, true},
                                   ScheduleRow{"warmupcosinelr", "cosine", true, false}};

const ScheduleRow* schedule_of(const Importing& in) {
  const auto* const row =
      std::ranges::find(kSchedules, in.word("scheduler.type"), &ScheduleRow::theirs);
  return row == kSchedules.end() ? nullptr : row;
}

void take_schedule(Importing& in, const KeyRule&) {
  const ScheduleRow* row = schedule_of(in);
  if (row == nullptr) {
    in.refuse("gxp has no " +
              (in.value().is_string() ? in.value().get<std::string>() : to_line(in.value())));
    return;
  }
  const std::vector<ImportedSetting> settings = {{"lr_schedule.name", std::string(row->ours)}};
  if (in.word("scheduler.params.warmup_type") == "linear")
    in.map(settings);
  else
    in.change(settings, "warmup_type is log by default in DeepSpeed; gxp warms up linearly");
}

// Parameters of a scheduler: `take` judges those of one that gxp has.
void judge_schedule(Importing& in, const KeyRule& rule, void (*take)(Importing&, const KeyRule&)) {
  if (schedule_of(in) == nullptr)
    in.refuse("belongs to a scheduler that gxp has not");
  else
    take(in, rule);
}

void take_schedule_value(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule& row) {
    if (it.value().is_null())  // auto: the training program's steps
      it.change({}, "the run's train.steps: give it");
    else if (row.key.ends_with("total_num_steps") && !schedule_of(it)->has_total)
      it.refuse("unknown to this scheduler");
    else
      it.take_value(row.setting, row.note);
  });
}

void take_lowest_rate(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule&) {
    if (is_false(it.value()))
      it.ignore("0, as gxp");
    else
      it.refuse("gxp warms up from 0");
  });
}

void take_highest_rate(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule&) {
    const auto rate = it.number("optimizer.params.lr");
    if (!schedule_of(it)->has_rate)
      it.refuse("unknown to this scheduler");
    else if (!rate)
      it.take_value("optim.lr");
    else if (to_number(it.value()) == rate)
      it.ignore("equals optim.lr");
    else
      it.take_value("optim.lr", "differs from optimizer.params.lr: the scheduler wins in DeepSpeed",
                    true);
  });
}

double rate_of(const Importing& in) { return in.number("optimizer.params.lr").value_or(1e-3); }

void take_cosine_end(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule, [](Importing& it, const KeyRule&) {
    const auto ratio = to_number(it.value());
    if (schedule_of(it)->has_rate || !ratio || *ratio < 0 || *ratio > 1)
      it.refuse("unknown to this scheduler, or not from 0 to 1");
    else
      it.map({{"lr_schedule.min_lr", *ratio * rate_of(it)}}, "a part of optim.lr");
  });
}

void take_warmup_type(Importing& in, const KeyRule& rule) {
  judge_schedule(in, rule,
                 [](Importing& it, const KeyRule&) { it.ignore("part of scheduler.type"); });
}

// fp16.enabled, bf16.enabled, bfloat16.enabled.
void take_precision(Importing& in, const KeyRule& rule) {
  if (is_true(in.value()))
    in.map({{"train.precision", std::string(rule.setting)}}, rule.note);
  else
    in.ignore("off");
}

bool is_block_on(const Importing& in) {
  return in.is_on(in.name().substr(0, in.name().find('.')) + ".enabled");
}

void take_scale(Importing& in, const KeyRule& rule) {
  if (!is_block_on(in))
    in.ignore("its block is off");
  else if (rule.setting.empty() && is_false(in.value()))
    in.map({}, "0: dynamic, as gxp always is");
  else if (rule.setting.empty())
    in.refuse("gxp has no fixed loss scale");
  else
    in.take_value(rule.setting);
}

void take_gradient_type(Importing& in, const KeyRule& rule) {
  const std::string word = lower_case(in.value().is_string() ? in.value().get<std::string>() : "");
  if (in.value().is_null())
    in.ignore("not set");
  else if (word == "fp32" || word == "bf16" || word == "fp16")
    in.map({{std::string(rule.setting), word}});
  else
    in.refuse("fp32, bf16 or fp16 was expected");
}

void take_reduction(Importing& in, const KeyRule&) {
  if (in.word("gradient_allreduce_op") == "mean")
    in.map({}, "gxp averages");
  else
    in.refuse("gxp averages gradients");
}

void take_print_steps(Importing& in, const KeyRule& rule) {
  const auto steps = to_number(in.value());
  if (steps && *steps >= 1 && *steps < 2e9)
    in.take_value(rule.setting);
  else
    in.ignore(kLogging);
}

void take_amp(Importing& in, const KeyRule& rule) {
  if (in.name() == "amp.enabled" && is_false(in.value()))
    in.ignore("off; DeepSpeed since 0.19 refuses the block even so");
  else
    act::refuse_block(in, rule);
}

void take_activations(Importing& in, const KeyRule&) {
  in.ignore(is_false(in.value())
                ? "off"
                : "acts in DeepSpeed only if the model calls it; gxp: train.recompute");
}

// "...enabled" anywhere below it.
void take_compression(Importing& in, const KeyRule& rule) {
  if (in.name().ends_with(".enabled"))
    act::refuse_unless_off(in, rule);
  else
    in.ignore("with its block's enabled");
}

constexpr KeyRule kRules[] = {
    {"train_batch_size", act::ignore, "", kBatch},
    {"train_micro_batch_size_per_gpu", act::ignore, "", kBatch},
    {"gradient_accumulation_steps", act::ignore, "", kBatch},
    {"gradient_clipping", act::take, "optim.clip"},
    {"steps_per_print", take_print_steps, "train.log_every"},
    {"prescale_gradients", act::refuse_unless_off, "", "gxp divides by the targets of all ranks"},
    {"gradient_predivide_factor", act::refuse_unless_one, "", "gxp divides once"},
    {"gradient_allreduce_op", take_reduction},
    {"communication_data_type", take_gradient_type, "parallel.reduce_dtype"},
    {"seq_parallel_communication_data_type", act::ignore, "", "no sequence parallelism"},
    {"data_types.grad_accum_dtype", take_gradient_type, "train.grad_accum_dtype"},
    {"data_types.*", act::refuse_unless_off, "", "gxp has train.precision for all parameters"},
    {"optimizer.type", take_optimizer},
    {"optimizer.legacy_fusion", act::ignore, "", kMeaningless},
    {"optimizer.params.lr", act::take, "optim.lr"},
    {"optimizer.params.muon_lr", take_parameter, "optim.lr"},
    {"optimizer.params.adam_lr", take_adam_rate},
    {"optimizer.params.betas", take_betas},
    {"optimizer.params.eps", take_parameter, "optim.eps"},
    {"optimizer.params.weight_decay", act::take, "optim.weight_decay"},
    {"optimizer.params.momentum", take_parameter, "optim.momentum"},
    {"optimizer.params.dampening", take_parameter, "optim.dampening"},
    {"optimizer.params.nesterov", take_parameter, "optim.nesterov"},
    {"optimizer.params.ns_method", act::ignore, "", "gxp has one Newton-Schulz iteration"},
    {"optimizer.params.adam_w_mode", act::ignore, "", "decides between adamw and adam"},
    {"optimizer.params.bias_correction",
     [](Importing& in, const KeyRule&) {
       if (is_true(in.value()))
         in.ignore(kAlways);
       else
         in.refuse("gxp always corrects the bias of Adam's moments");
     }},
    {"optimizer.params.amsgrad", act::refuse_unless_off, "", "no AMSGrad"},
    {"optimizer.params.maximize", act::refuse_unless_off, "", "gxp minimises"},
    {"optimizer.params.torch_adam", act::ignore, "", kMeaningless},
    {"optimizer.params.fp32_optimizer_states", act::ignore, "", "see optim.state_dtype"},
    {"optimizer.params.fused", act::ignore, "", kMeaningless},
    {"optimizer.params.foreach", act::ignore, "", kMeaningless},
    {"optimizer.params.set_grad_none", act::ignore, "", kMeaningless},
    {"optimizer.params.max_grad_norm", act::refuse, "",
     "DeepSpeed refuses it too: gradient_clipping"},
    {"optimizer.params.*", act::refuse, "", "unknown to this optimizer"},
    {"scheduler.type", take_schedule},
    {"scheduler.params.warmup_min_lr", take_lowest_rate},
    {"scheduler.params.warmup_max_lr", take_highest_rate},
    {"scheduler.params.warmup_num_steps", take_schedule_value, "lr_schedule.warmup_steps"},
    {"scheduler.params.total_num_steps", take_schedule_value, "lr_schedule.total_steps"},
    {"scheduler.params.warmup_min_ratio", take_lowest_rate},
    {"scheduler.params.cos_min_ratio", take_cosine_end},
    {"scheduler.params.warmup_type", take_warmup_type},
    {"scheduler.params.*",
     [](Importing& in, const KeyRule& rule) {
       judge_schedule(
           in, rule, [](Importing& it, const KeyRule&) { it.refuse("unknown to this scheduler"); });
     }},
    {"fp16.enabled", take_precision, "fp16"},
    {"fp16.loss_scale", take_scale},
    {"fp16.initial_scale_power", take_scale, "fp16.initial_scale_power"},
    {"fp16.loss_scale_window", take_scale, "fp16.window"},
    {"fp16.hysteresis", take_scale, "fp16.hysteresis"},
    {"fp16.consecutive_hysteresis", take_scale, "fp16.consecutive_hysteresis"},
    {"fp16.min_loss_scale", take_scale, "fp16.min_scale"},
    {"fp16.auto_cast", act::ignore, "", kMeaningless},
    {"fp16.fp16_master_weights_and_grads", act::refuse_unless_off, "", "gxp's are float32"},
    {"bf16.enabled", take_precision, "bf16"},
    {"bf16.check_grad_overflow", act::ignore, "", kMeaningless},
    {"bf16.immediate_grad_update", act::ignore, "", kMeaningless},
    {"bf16.bf16_master_weights_and_grads", act::refuse_unless_off, "", "gxp's are float32"},
    {"bf16.bf16_optimizer_states", act::refuse_unless_off, "",
     "set optim.state_dtype = \"bf16\", which rounds stochastically"},
    {"bfloat16.enabled", take_precision, "bf16", "an older spelling"},
    {"amp.*", take_amp, "", "apex amp: use fp16 or bf16"},
    {"torch_autocast.*", act::refuse_block, "", "gxp has train.precision, not autocast"},
    {"activation_checkpointing.*", take_activations},
    {"checkpoint.tag_validation", act::ignore, "", kAlways},
    {"checkpoint.load_universal", act::ignore, "", "gxp convert-ckpt reads universal checkpoints"},
    {"checkpoint.*", act::ignore, "", kMeaningless},
    {"aio.*", act::ignore, "", "offload.io chooses io_uring or pread itself"},
    {"elasticity.*", act::refuse_block, "",
     "gxp resumes on any number of ranks; the batch must be given"},
    {"pipeline.*", act::refuse, "", "no pipeline parallelism"},
    {"sparse_attention.*", act::refuse, "", "no sparse attention"},
    {"compression_training.*", take_compression, "", "no compression"},
    {"progressive_layer_drop.*", act::refuse_block, "", "no layer drop"},
    {"curriculum_learning.*", act::refuse_block, "", "no curriculum"},
    {"data_efficiency.*", act::refuse_block, "", "no curriculum and no token dropping"},
    {"eigenvalue.*", act::refuse_block, "", "no eigenvalues"},
    {"quantize_training.*", act::refuse_block, "", "no quantised training"},
    {"hybrid_engine.*", act::refuse_block, "", "no hybrid engine"},
    {"autotuning.*", act::refuse_block, "", "gxp memcalc --solve and gxp shard-plan search"},
    {"zenflow.*", act::refuse, "", "no ZenFlow"},
    {"sequence_parallel_size", act::refuse_unless_one, "", "no sequence parallelism"},
    {"tensor_parallel.autotp_size", act::refuse_unless_one, "", "no tensor parallelism"},
    {"tensor_parallel.*", act::ignore, "", "with autotp_size"},
    {"expert_parallel.*", act::refuse_block, "", "no expert parallelism"},
    {"use_data_before_expert_parallelism", act::ignore, "", "no experts in gxp"},
    {"sparse_gradients", act::refuse_unless_off, "", "gxp's gradients are dense"},
    {"disable_allgather", act::refuse_unless_off, "", "gxp always gathers"},
    {"compile.*", act::ignore, "", kNoCompiler},
    {"dataloader_drop_last", act::ignore, "", "gxp packs rows"},
    {"zero_allow_untested_optimizer", act::ignore, "", kMeaningless},
    {"zero_force_ds_cpu_optimizer", act::ignore, "", kMeaningless},
    {"managed_gradient_accumulation", act::ignore, "", kMeaningless},
    {"disable_python_gc", act::ignore, "", kMeaningless},
    {"load_universal_checkpoint", act::ignore, "", "gxp convert-ckpt reads universal checkpoints"},
    {"wall_clock_breakdown", act::ignore, "", kLogging},
    {"memory_breakdown", act::ignore, "", kLogging},
    {"dump_state", act::ignore, "", kLogging},
    {"log_level", act::ignore, "", kLogging},
    {"flops_profiler.*", act::ignore, "", kLogging},
    {"comms_logger.*", act::ignore, "", kLogging},
    {"tensorboard.*", act::ignore, "", kLogging},
    {"wandb.*", act::ignore, "", kLogging},
    {"csv_monitor.*", act::ignore, "", kLogging},
    {"comet.*", act::ignore, "", kLogging},
    {"monitor_config.*", act::ignore, "", kLogging},
};

}  // namespace

std::span<const KeyRule> rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(std::begin(kRules), std::end(kRules));
    all.insert(all.end(), zero_keys::rules().begin(), zero_keys::rules().end());
    return all;
  }();
  return kAll;
}

}  // namespace gxp::deepspeed
