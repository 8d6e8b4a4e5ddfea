#include "lib/config/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/arch/family.h"
#include "lib/arch/optimizers.h"
#include "lib/config/profile_range.h"
#include "lib/config/settings.h"
#include "lib/config/strategy.h"

namespace gxp {
namespace {

struct Rule {
  const char* setting;
  const char* other;                         // a second setting that is judged, or ""
  std::string (*problem)(const RunConfig&);  // "" if the rule holds
};

std::string heads_divide_hidden(const RunConfig& run) {
  if (run.model.head_size > 0 || run.model.hidden % run.model.heads == 0) return "";
  return fmt::format("must divide model.hidden ({}), is {}", run.model.hidden, run.model.heads);
}

std::string kv_heads_divide_heads(const RunConfig& run) {
  if (run.model.kv_heads == 0 || run.model.heads % run.model.kv_heads == 0) return "";
  return fmt::format("must divide model.heads ({}), is {}", run.model.heads, run.model.kv_heads);
}

// The value of "model.family" or "optim.name".
std::string name_of(std::string_view setting, const RunConfig& run) {
  return setting == "model.family" ? run.model.family : run.optim.name;
}

// The reader of a run file must not believe that a setting does something where it does nothing.
std::string is_left_out_of_others(const Setting& setting, const RunConfig& run) {
  const std::string name = name_of(setting.named_by, run);
  const bool is_owned = std::ranges::find(setting.owners, name) != setting.owners.end();
  if (is_owned || setting.is_default(run)) return "";
  const bool names_others =
      setting.owners.size() > kMostNames && setting.others.size() <= kMostNames;
  return fmt::format("is {} {} {}; leave it out for {}", names_others ? "not for" : "only for",
                     setting.named_by, few_of(names_others ? setting.others : setting.owners),
                     name);
}

std::string bf16_is_rounded(const RunConfig& run) {
  if (run.train.rounding == Rounding::kNearest || run.train.precision == NumberType::kBf16)
    return "";
  return fmt::format("must be nearest with train.precision {}; stochastic is for bf16",
                     run.train.precision);
}

std::string cudnn_attends_to_halves(const RunConfig& run) {
  if (run.train.attention != AttentionChoice::kCudnn || run.train.precision != NumberType::kFp32)
    return "";
  return "must be auto or own with train.precision fp32; cuDNN computes in halves";
}

std::string cudnn_attends_without_window(const RunConfig& run) {
  const int positions = run.data.sequence != 0 ? run.data.sequence : run.model.context;
  if (run.train.attention != AttentionChoice::kCudnn) return "";
  if (run.model.window == 0 || run.model.window >= positions) return "";
  return fmt::format("must be auto or own with model.window {}; cuDNN's graph has no window",
                     run.model.window);
}

std::string cudnn_attends_without_cap(const RunConfig& run) {
  if (run.train.attention != AttentionChoice::kCudnn || run.model.score_cap == 0) return "";
  return fmt::format("must be auto or own with model.score_cap {}; cuDNN's graph has no cap",
                     run.model.score_cap);
}

std::string operands_suit_precision(const RunConfig& run) {
  const Choice<MatmulType> matmul = run.train.matmul;
  if (matmul == MatmulType::kPrecision) return "";
  const Choice<NumberType> of = matmul == MatmulType::kFp8 ? NumberType::kBf16 : NumberType::kFp32;
  if (run.train.precision == of) return "";
  return fmt::format("must be precision with train.precision {}; {} is for {}", run.train.precision,
                     matmul, of);
}

std::string fast_sums_are_of_fp8(const RunConfig& run) {
  if (run.train.fp8_accumulation != Float8Sums::kFast || run.train.matmul == MatmulType::kFp8)
    return "";
  return fmt::format("must be f32 with train.matmul {}; fast accumulation is for fp8",
                     run.train.matmul);
}

std::string codes_are_of_fp8(const RunConfig& run) {
  if (run.train.fp8_weights == CodeReuse::kAgain || run.train.matmul == MatmulType::kFp8) return "";
  return fmt::format("must be again with train.matmul {}; it is for fp8", run.train.matmul);
}

std::string file_has_a_directory(const RunConfig& run, bool is_written) {
  if (!is_written || !run.train.run_dir.empty() || !run.checkpoint.dir.empty()) return "";
  return "needs a directory for its file; set train.run_dir or checkpoint.dir";
}

// Gradients that no scale of the loss keeps within the range of fp16 would become zeros.
std::string fp16_is_scaled(const RunConfig& run, NumberType dtype) {
  if (dtype != NumberType::kFp16 || run.train.precision == NumberType::kFp16) return "";
  return fmt::format("must not be fp16 with train.precision {}, which does not scale the loss",
                     run.train.precision);
}

// The tree of sums goes on from micro-batches to ranks, wherever that is.
std::string one_type_makes_one_tree(const RunConfig& run) {
  const Choice<NumberType> kept = run.train.grad_accum_dtype;
  if (run.train.deterministic != Determinism::kAnyWorldSize || run.parallel.reduce_dtype == kept)
    return "";
  return fmt::format(
      "must be train.grad_accum_dtype ({}) with train.deterministic any-world-size, where every "
      "sum "
      "of gradients is rounded alike, is {}",
      kept, run.parallel.reduce_dtype);
}

// What is offloaded, and how.
bool offloads(const RunConfig& run) { return run.offload.optimizer != OffloadTo::kNone; }

std::string offloaded_state_is_elementwise(const RunConfig& run) {
  if (!offloads(run)) return "";
  const std::string& name = run.optim.name;
  const OptimizerSpec spec = make_optimizer_spec(run.optim);
  if (spec.needs_unsharded != nullptr)
    return fmt::format("must be none for {}, which needs whole tensors, is {}", name,
                       run.offload.optimizer);
  if (!spec.kept.empty() || run.train.precision != NumberType::kFp32) return "";
  return fmt::format(
      "must be none for {} in fp32, which has no optimizer state with these settings", name);
}

std::string offloaded_state_is_in_tiles(const RunConfig& run) {
  if (!offloads(run) || run.optim.state_dtype != MomentType::kInt8) return "";
  return fmt::format(
      "must be none with optim.state_dtype int8, is {}: the scales of its blocks do not fill "
      "tiles; "
      "bf16 can be offloaded",
      run.offload.optimizer);
}

std::string parameters_follow_the_optimizer(const RunConfig& run) {
  if (run.offload.parameters == OffloadTo::kNone || (offloads(run) && run.offload.ratio == 1))
    return "";
  return "needs all of the optimizer's state offloaded: offload.optimizer, and offload.ratio 1";
}

std::string ratio_is_of_something(const RunConfig& run) {
  if (run.offload.ratio == 1 || offloads(run)) return "";
  return fmt::format(
      "has no effect without offload.optimizer = memory or file; set that, or leave out the ratio "
      "of {}",
      run.offload.ratio);
}

std::string files_have_a_path(const RunConfig& run) {
  const bool in_file =
      run.offload.optimizer == OffloadTo::kFile || run.offload.parameters == OffloadTo::kFile;
  if (in_file && run.offload.path.empty())
    return "must name a directory for what is offloaded to files";
  if (!in_file && !run.offload.path.empty())
    return "is for what is offloaded to files, which is nothing; set offload.optimizer = \"file\"";
  return "";
}

std::string train_names_files(const RunConfig& run) {
  return run.data.train.empty() ? "must name at least one file" : "";
}

std::string row_fits_context(const RunConfig& run) {
  if (run.data.sequence <= run.model.context) return "";
  return fmt::format("must be at most model.context ({}), is {}", run.model.context,
                     run.data.sequence);
}

std::string validation_has_files(const RunConfig& run) {
  if (run.train.valid_every == 0 || has_validation(run)) return "";
  return "needs files in data.valid, or data.validation_split";
}

std::string split_replaces_files(const RunConfig& run) {
  if (run.data.validation_split == 0 || run.data.valid.empty()) return "";
  return fmt::format("must be 0 with files in data.valid, is {}", run.data.validation_split);
}

std::string each_entry_has_a_weight(const RunConfig& run) {
  const size_t weights = run.data.weights.size(), entries = run.data.train.size();
  if (weights == 0 || weights == entries) return "";
  return fmt::format("must have a weight for each entry of data.train, {}, but has {}", entries,
                     weights);
}

std::string steps_are_of_the_run(const RunConfig& run, const std::string& text) {
  if (text.empty()) return "";
  const auto range = parse_profile_range(text);
  if (!range)
    return fmt::format("must be two steps in ascending order, such as \"10-12\", is \"{}\"", text);
  if (range->last <= run.train.steps) return "";
  return fmt::format("must end by train.steps ({}), is {}", run.train.steps, text);
}

std::string min_lr_below_lr(const RunConfig& run) {
  if (run.lr_schedule.min_lr <= run.optim.lr) return "";
  return fmt::format("must be at most optim.lr ({}), is {}", run.optim.lr, run.lr_schedule.min_lr);
}

std::string warmup_fits_schedule(const RunConfig& run) {
  const bool given = run.lr_schedule.total_steps > 0;
  const int total_steps = given ? run.lr_schedule.total_steps : run.train.steps;
  if (run.lr_schedule.warmup_steps <= total_steps) return "";
  return fmt::format("must be at most {} ({}), is {}",
                     given ? "lr_schedule.total_steps" : "train.steps", total_steps,
                     run.lr_schedule.warmup_steps);
}

std::string saving_has_directory(const RunConfig& run) {
  if (run.checkpoint.every == 0 || !run.checkpoint.dir.empty()) return "";
  return "needs a directory in checkpoint.dir";
}

std::string export_has_directory(const RunConfig& run) {
  if (run.checkpoint.export_type == ExportType::kNone || !run.checkpoint.dir.empty()) return "";
  return "needs a directory in checkpoint.dir";
}

std::string replicas_have_a_fallback(const RunConfig& run) {
  if (run.checkpoint.replica == ReplicaPlace::kNone || !run.checkpoint.dir.empty()) return "";
  return "needs a directory in checkpoint.dir";
}

std::string adapters_have_a_rank(const RunConfig& run) {
  const LoraConfig& lora = run.lora;
  if (lora.rank > 0 || lora == LoraConfig{.init = lora.init}) return "";
  return "must be above 0 for the other settings of [lora]; set it, or leave them out";
}

std::string graphs_repeat(const RunConfig& run) {
  if (run.train.cuda_graphs != CudaGraphs::kOn || run.lora.dropout == 0) return "";
  return "must be off or auto with lora.dropout, whose numbers differ in each step; is on";
}

bool compresses(const RunConfig& run) { return run.comm.codec != "none"; }

// A codec's blocks, and what it leaves pending, follow the ranks.
std::string codec_follows_the_ranks(const RunConfig& run) {
  if (!compresses(run) || run.train.deterministic != Determinism::kAnyWorldSize) return "";
  return fmt::format(
      "must be none with train.deterministic any-world-size, is {}: what a codec rounds depends on "
      "the number of ranks and hosts",
      run.comm.codec);
}

// What is pending would be scaled by another step's scale.
std::string codec_has_no_scale(const RunConfig& run) {
  if (!compresses(run) || run.train.precision != NumberType::kFp16) return "";
  return fmt::format(
      "must be none with train.precision fp16, is {}: error feedback would add gradients of "
      "different loss scales; use bf16",
      run.comm.codec);
}

// What is pending has gone into the bad step's gradients, and the bad ones into what is pending.
std::string codec_skips_no_step(const RunConfig& run) {
  if (!compresses(run) || run.train.bad_step != BadStep::kSkip) return "";
  return fmt::format(
      "must be none with train.bad_step skip, is {}: error feedback would carry part of a bad "
      "step's gradients into the next one; use stop or roll-back",
      run.comm.codec);
}

std::string is_for_own_engine(const RunConfig& run, const std::string& codec) {
  if (codec == "none" || run.comm.engine != "nccl") return "";
  return fmt::format("must be none with comm.engine nccl, is {}: NCCL sends values as they are",
                     codec);
}

bool compresses_gathers(const RunConfig& run) { return run.comm.gather_codec != "none"; }

std::string gathers_are_of_shards(const RunConfig& run) {
  const std::string& strategy = run.parallel.strategy;
  if (!compresses_gathers(run) || find_strategy(strategy).shard_parameters) return "";
  return fmt::format(
      "must be none with parallel.strategy {}, is {}: its steps do not gather sharded parameters, "
      "and persistent ones are not rounded; use zero3",
      strategy, run.comm.gather_codec);
}

std::string gathers_follow_the_ranks(const RunConfig& run) {
  if (!compresses_gathers(run) || run.train.deterministic != Determinism::kAnyWorldSize) return "";
  return fmt::format(
      "must be none with train.deterministic any-world-size, is {}: what a codec rounds depends on "
      "the number of ranks and hosts",
      run.comm.gather_codec);
}

constexpr Rule kRules[] = {
    {"model.heads", "model.hidden", heads_divide_hidden},
    {"model.kv_heads", "model.heads", kv_heads_divide_heads},
    {"lora.rank", "lora.init", adapters_have_a_rank},
    {"train.cuda_graphs", "lora.dropout", graphs_repeat},
    {"data.train", "", train_names_files},
    {"data.weights", "data.train", each_entry_has_a_weight},
    {"data.validation_split", "data.valid", split_replaces_files},
    {"data.sequence", "model.context", row_fits_context},
    {"train.valid_every", "data.valid", validation_has_files},
    {"train.profile_steps", "train.steps",
     [](const RunConfig& run) { return steps_are_of_the_run(run, run.train.profile_steps); }},
    {"train.trace_steps", "train.steps",
     [](const RunConfig& run) { return steps_are_of_the_run(run, run.train.trace_steps); }},
    {"train.trace_steps", "train.run_dir",
     [](const RunConfig& run) {
       return file_has_a_directory(run, !run.train.trace_steps.empty());
     }},
    {"train.tensorboard", "train.run_dir",
     [](const RunConfig& run) { return file_has_a_directory(run, run.train.tensorboard); }},
    {"train.rounding", "train.precision", bf16_is_rounded},
    {"train.attention", "train.precision", cudnn_attends_to_halves},
    {"train.attention", "model.window", cudnn_attends_without_window},
    {"train.attention", "model.score_cap", cudnn_attends_without_cap},
    {"train.matmul", "train.precision", operands_suit_precision},
    {"train.fp8_accumulation", "train.matmul", fast_sums_are_of_fp8},
    {"train.fp8_weights", "train.matmul", codes_are_of_fp8},
    {"train.grad_accum_dtype", "train.precision",
     [](const RunConfig& run) { return fp16_is_scaled(run, run.train.grad_accum_dtype); }},
    {"parallel.reduce_dtype", "train.precision",
     [](const RunConfig& run) { return fp16_is_scaled(run, run.parallel.reduce_dtype); }},
    {"parallel.reduce_dtype", "train.grad_accum_dtype", one_type_makes_one_tree},
    {"offload.optimizer", "optim.name", offloaded_state_is_elementwise},
    {"offload.optimizer", "optim.state_dtype", offloaded_state_is_in_tiles},
    {"offload.parameters", "offload.optimizer", parameters_follow_the_optimizer},
    {"offload.ratio", "offload.optimizer", ratio_is_of_something},
    {"offload.path", "offload.optimizer", files_have_a_path},
    {"lr_schedule.min_lr", "optim.lr", min_lr_below_lr},
    {"lr_schedule.warmup_steps", "lr_schedule.total_steps", warmup_fits_schedule},
    {"comm.codec", "train.deterministic", codec_follows_the_ranks},
    {"comm.codec", "train.precision", codec_has_no_scale},
    {"comm.codec", "train.bad_step", codec_skips_no_step},
    {"comm.codec", "comm.engine",
     [](const RunConfig& run) { return is_for_own_engine(run, run.comm.codec); }},
    {"comm.gather_codec", "comm.engine",
     [](const RunConfig& run) { return is_for_own_engine(run, run.comm.gather_codec); }},
    {"comm.gather_codec", "parallel.strategy", gathers_are_of_shards},
    {"comm.gather_codec", "train.deterministic", gathers_follow_the_ranks},
    {"checkpoint.every", "checkpoint.dir", saving_has_directory},
    {"checkpoint.export", "checkpoint.dir", export_has_directory},
    {"checkpoint.replica", "checkpoint.dir", replicas_have_a_fallback},
};

}  // namespace

std::vector<BrokenRule> broken_rules(const RunConfig& run, const std::set<std::string>& unusable) {
  std::vector<BrokenRule> broken;
  const auto judge = [&](const std::string& setting, const std::string& other,
                         const auto& problem_of) {
    if (unusable.contains(setting) || unusable.contains(other)) return;
    if (std::string problem = problem_of(); !problem.empty())
      broken.push_back({setting, std::move(problem)});
  };
  const auto judge_section = [&](const std::string& section, const auto& rules,
                                 const auto& settings) {
    for (const auto& rule : rules)
      judge(section + "." + std::string(rule.key), section + "." + std::string(rule.other),
            [&] { return rule.problem(settings); });
  };
  for (const Rule& rule : kRules)
    judge(rule.setting, rule.other, [&] { return rule.problem(run); });
  judge_section("model", model_rules(), run.model);
  judge_section("optim", find_optimizer(run.optim.name).rules, run.optim);
  for (const Setting& setting : settings()) {
    if (setting.owners.empty()) continue;
    judge(setting.name(), std::string(setting.named_by),
          [&] { return is_left_out_of_others(setting, run); });
  }
  return broken;
}

}  // namespace gxp
