// DeepSpeed's JSON outside optimizer, scheduler and zero_optimization. Source: DeepSpeed 0.19.8,
// runtime/config.py and runtime/precision_config.py.
#include <array>

#include "lib/base/text/word_aliases.h"
#include "lib/tools/imports/programs.h"

namespace gxp::deepspeed {
namespace {

constexpr std::string_view kBatch = "part of the batch rule";
constexpr std::string_view kStrictBlock = "unknown key of this block: DeepSpeed refuses it";

// fp16.enabled, bf16.enabled, bfloat16.enabled.
void take_precision(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{"train.precision", std::string(rule.setting)}}, rule.note);
}

bool has_new_block(const Importing& in) { return in.has("bf16") || in.has("bf16.enabled"); }

// Of the block "bfloat16", the older spelling.
void take_old_block(Importing& in, const KeyRule& rule) {
  if (has_new_block(in))
    in.ignore("DeepSpeed reads the block bf16 instead");
  else if (in.name() == "bfloat16.enabled")
    take_precision(in, rule);
  else if (is_false(in.value()))
    in.ignore("off");
  else
    in.refuse("an older spelling: set it in the block bf16");
}

bool is_block_on(const Importing& in) {
  return in.is_on(in.name().substr(0, in.name().find('.')) + ".enabled");
}

void take_scale(Importing& in, const KeyRule& rule) {
  if (!is_block_on(in))
    in.ignore("its block is off");
  else if (rule.setting.empty() && to_number(in.value()) == 0)
    in.map({}, "0: dynamic, as gxp always is");
  else if (rule.setting.empty())
    in.refuse("gxp has no fixed loss scale");
  else
    in.take_value(rule.setting);
}

void take_gradient_type(Importing& in, const KeyRule& rule) {
  constexpr std::array<std::string_view, 3> kTypes = {"fp32", "bf16", "fp16"};
  const auto type = find_word(kTypes, to_words(in.value()));
  if (in.value().is_null())
    in.ignore("not set");
  else if (type)
    in.map({{std::string(rule.setting), std::string(*type)}});
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
    {"data_types.keep_in_fp32_modules",
     [](Importing& in, const KeyRule&) {
       if (in.is_auto() || is_false(in.value()))
         in.ignore("no module is named");
       else
         in.refuse("gxp has train.precision for all modules");
     }},
    {"data_types.*", act::refuse_unless_off, "", "gxp has train.precision for all parameters"},
    {"fp16.enabled", take_precision, "fp16"},
    {"fp16.loss_scale", take_scale},
    {"fp16.initial_scale_power", take_scale, "fp16.initial_scale_power"},
    {"fp16.loss_scale_window", take_scale, "fp16.window"},
    {"fp16.hysteresis", take_scale, "fp16.hysteresis"},
    {"fp16.consecutive_hysteresis", take_scale, "fp16.consecutive_hysteresis"},
    {"fp16.min_loss_scale", take_scale, "fp16.min_scale"},
    {"fp16.auto_cast", act::ignore, "", kMeaningless},
    {"fp16.*", act::refuse_unknown, "", kStrictBlock},
    {"fp16.fp16_master_weights_and_grads", act::refuse_unless_off, "", "gxp's are float32"},
    {"bf16.enabled", take_precision, "bf16"},
    {"bf16.check_grad_overflow", act::ignore, "", kMeaningless},
    {"bf16.immediate_grad_update", act::ignore, "", kMeaningless},
    {"bf16.bf16_master_weights_and_grads", act::refuse_unless_off, "", "gxp's are float32"},
    {"bf16.bf16_optimizer_states", act::refuse_unless_off, "",
     "set optim.state_dtype = \"bf16\", which rounds stochastically"},
    {"bf16.*", act::refuse_unknown, "", kStrictBlock},
    {"bfloat16.*", take_old_block, "bf16", kOldSpelling},
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
    {"weight_quantization.*", act::refuse, "", "no quantised weights"},
    {"nebula.*", act::refuse_block, "", "checkpoints go to checkpoint.dir"},
    {"graph_harvesting", act::ignore, "", kMeaningless},
    {"datastates_ckpt.*", act::ignore, "", "see checkpoint.async"},
    {"allgather_size", act::ignore, "", "gxp gathers by FSDP unit"},
    {"vocabulary_size", act::ignore, "", "the model decides it"},
    {"timers.*", act::ignore, "", kLogging},
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

bool is_brain_float(const Importing& in) {
  return in.is_on(has_new_block(in) ? "bf16.enabled" : "bfloat16.enabled");
}

std::span<const KeyRule> rules() {
  static const std::vector<KeyRule> kAll = [] {
    std::vector<KeyRule> all(std::begin(kRules), std::end(kRules));
    all.insert(all.end(), optimizer_keys::rules().begin(), optimizer_keys::rules().end());
    all.insert(all.end(), zero_keys::rules().begin(), zero_keys::rules().end());
    return all;
  }();
  return kAll;
}

}  // namespace gxp::deepspeed
