#include "lib/config/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

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

// RoPE turns pairs of channels; and products of sizes stay within 64 bits (run_config.h).
std::string head_size_is_possible(const RunConfig& run) {
  constexpr int64_t kMostChannels = 1 << 20;
  const ModelConfig& model = run.model;
  if (model.family != "llama") return "";
  if (int64_t{model.heads} * model.head_size > kMostChannels)
    return fmt::format("times model.heads ({}) must be at most {}, is {}", model.heads,
                       kMostChannels, int64_t{model.heads} * model.head_size);
  if (model.head_size == 0 && model.hidden % model.heads != 0) return "";  // has a rule of its own
  if (model.channels_per_head() % 2 == 0) return "";
  return fmt::format("must be even for rotary positions, is {}{}", model.channels_per_head(),
                     model.head_size == 0 ? " (model.hidden / model.heads)" : "");
}

// A rule for each setting that GPT-2 has no use for: the reader of a run file must not believe that
// it does something.
template <auto member>
std::string is_left_out_of_gpt2(const RunConfig& run) {
  const ModelConfig defaults;
  if (run.model.family != "gpt2" || run.model.*member == defaults.*member) return "";
  return "is for model.family = \"llama\"; leave it out for gpt2";
}

// The same for settings that some optimizers have.
constexpr std::array<std::string_view, 1> kSgd = {"sgd"};
constexpr std::array<std::string_view, 1> kMuon = {"muon"};
constexpr std::array<std::string_view, 1> kAdafactor = {"adafactor"};
constexpr std::array<std::string_view, 2> kWithMomentum = {"sgd", "muon"};

template <auto member, const auto& owners>
std::string is_left_out_of_others(const RunConfig& run) {
  const OptimConfig defaults;
  const bool owned = std::ranges::find(owners, run.optim.name) != owners.end();
  if (owned || run.optim.*member == defaults.*member) return "";
  return fmt::format("is for optim.name = \"{}\"; leave it out for {}",
                     fmt::join(owners, "\" or \""), run.optim.name);
}

std::string damps_a_momentum(const RunConfig& run) {
  if (run.optim.dampening == 0 || run.optim.momentum > 0) return "";
  return fmt::format("needs optim.momentum above 0, is {}", run.optim.dampening);
}

// As PyTorch's SGD demands.
std::string nesterov_is_undamped(const RunConfig& run) {
  if (!run.optim.nesterov || run.optim.name != "sgd") return "";
  if (run.optim.momentum > 0 && run.optim.dampening == 0) return "";
  return fmt::format("needs optim.momentum above 0 and optim.dampening 0, which are {} and {}",
                     run.optim.momentum, run.optim.dampening);
}

std::string bf16_is_rounded(const RunConfig& run) {
  if (run.train.rounding == "nearest" || run.train.precision == "bf16") return "";
  return fmt::format("must be nearest with train.precision {}; stochastic is for bf16",
                     run.train.precision);
}

std::string cudnn_attends_to_halves(const RunConfig& run) {
  if (run.train.attention != "cudnn" || run.train.precision != "fp32") return "";
  return "must be auto or own with train.precision fp32; cuDNN computes in halves";
}

std::string fp8_rounds_bf16(const RunConfig& run) {
  if (run.train.matmul != "fp8" || run.train.precision == "bf16") return "";
  return fmt::format("must be precision with train.precision {}; fp8 is for bf16",
                     run.train.precision);
}

// Gradients that no scale of the loss keeps within the range of fp16 would become zeros.
std::string fp16_is_scaled(const RunConfig& run, const std::string& dtype) {
  if (dtype != "fp16" || run.train.precision == "fp16") return "";
  return fmt::format("must not be fp16 with train.precision {}, which does not scale the loss",
                     run.train.precision);
}
std::string kept_gradients_are_scaled(const RunConfig& run) {
  return fp16_is_scaled(run, run.train.grad_accum_dtype);
}
std::string reduced_gradients_are_scaled(const RunConfig& run) {
  return fp16_is_scaled(run, run.parallel.reduce_dtype);
}

// The tree of sums goes on from micro-batches to ranks, wherever that is.
std::string one_type_makes_one_tree(const RunConfig& run) {
  const std::string& kept = run.train.grad_accum_dtype;
  if (run.train.deterministic != "any-world-size" || run.parallel.reduce_dtype == kept) return "";
  return fmt::format(
      "must be train.grad_accum_dtype ({}) with train.deterministic any-world-size, where every "
      "sum "
      "of gradients is rounded alike, is {}",
      kept, run.parallel.reduce_dtype);
}

// What is offloaded, and how.
bool offloads(const RunConfig& run) { return run.offload.optimizer != "none"; }

std::string offloaded_state_is_elementwise(const RunConfig& run) {
  const std::string& name = run.optim.name;
  if (!offloads(run)) return "";
  if (name == "muon" || name == "adafactor")
    return fmt::format("must be none for {}, which needs whole tensors, is {}", name,
                       run.offload.optimizer);
  if (name != "sgd" || run.optim.momentum > 0 || run.train.precision != "fp32") return "";
  return "must be none for sgd without momentum in fp32, which keeps nothing";
}

std::string offloaded_state_is_of_all(const RunConfig& run) {
  if (!offloads(run) || run.train.frozen.empty()) return "";
  return fmt::format(
      "must be none with train.frozen, is {}: its tiles are of the state of all tensors",
      run.offload.optimizer);
}

std::string parameters_follow_the_optimizer(const RunConfig& run) {
  if (run.offload.parameters == "none" || (offloads(run) && run.offload.ratio == 1)) return "";
  return "needs all of the optimizer's state offloaded: offload.optimizer, and offload.ratio 1";
}

std::string ratio_is_of_something(const RunConfig& run) {
  if (run.offload.ratio == 1 || offloads(run)) return "";
  return fmt::format(
      "is a part of what is offloaded, which is nothing; set offload.optimizer to "
      "memory or file, or leave out the ratio of {}",
      run.offload.ratio);
}

std::string files_have_a_path(const RunConfig& run) {
  const bool in_file = run.offload.optimizer == "file" || run.offload.parameters == "file";
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
  if (run.train.valid_every == 0 || !run.data.valid.empty()) return "";
  return "needs files in data.valid";
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

constexpr Rule kRules[] = {
    {"model.heads", "model.hidden", heads_divide_hidden},
    {"model.kv_heads", "model.heads", kv_heads_divide_heads},
    {"model.head_size", "model.heads", head_size_is_possible},
    {"model.kv_heads", "model.family", is_left_out_of_gpt2<&ModelConfig::kv_heads>},
    {"model.head_size", "model.family", is_left_out_of_gpt2<&ModelConfig::head_size>},
    {"model.mlp_hidden", "model.family", is_left_out_of_gpt2<&ModelConfig::mlp_hidden>},
    {"model.rope_theta", "model.family", is_left_out_of_gpt2<&ModelConfig::rope_theta>},
    {"model.tied_head", "model.family", is_left_out_of_gpt2<&ModelConfig::tied_head>},
    {"data.train", "", train_names_files},
    {"data.sequence", "model.context", row_fits_context},
    {"train.valid_every", "data.valid", validation_has_files},
    {"train.rounding", "train.precision", bf16_is_rounded},
    {"train.attention", "train.precision", cudnn_attends_to_halves},
    {"train.matmul", "train.precision", fp8_rounds_bf16},
    {"train.grad_accum_dtype", "train.precision", kept_gradients_are_scaled},
    {"parallel.reduce_dtype", "train.precision", reduced_gradients_are_scaled},
    {"parallel.reduce_dtype", "train.grad_accum_dtype", one_type_makes_one_tree},
    {"optim.momentum", "optim.name", is_left_out_of_others<&OptimConfig::momentum, kWithMomentum>},
    {"optim.dampening", "optim.name", is_left_out_of_others<&OptimConfig::dampening, kSgd>},
    {"optim.nesterov", "optim.name", is_left_out_of_others<&OptimConfig::nesterov, kWithMomentum>},
    {"optim.ns_steps", "optim.name", is_left_out_of_others<&OptimConfig::ns_steps, kMuon>},
    {"optim.adjust_lr", "optim.name", is_left_out_of_others<&OptimConfig::adjust_lr, kMuon>},
    {"optim.adamw_lr_ratio", "optim.name",
     is_left_out_of_others<&OptimConfig::adamw_lr_ratio, kMuon>},
    {"optim.decay_rate", "optim.name", is_left_out_of_others<&OptimConfig::decay_rate, kAdafactor>},
    {"optim.clip_threshold", "optim.name",
     is_left_out_of_others<&OptimConfig::clip_threshold, kAdafactor>},
    {"optim.eps1", "optim.name", is_left_out_of_others<&OptimConfig::eps1, kAdafactor>},
    {"optim.dampening", "optim.momentum", damps_a_momentum},
    {"optim.nesterov", "optim.momentum", nesterov_is_undamped},
    {"offload.optimizer", "optim.name", offloaded_state_is_elementwise},
    {"offload.optimizer", "train.frozen", offloaded_state_is_of_all},
    {"offload.parameters", "offload.optimizer", parameters_follow_the_optimizer},
    {"offload.ratio", "offload.optimizer", ratio_is_of_something},
    {"offload.path", "offload.optimizer", files_have_a_path},
    {"lr_schedule.min_lr", "optim.lr", min_lr_below_lr},
    {"lr_schedule.warmup_steps", "lr_schedule.total_steps", warmup_fits_schedule},
    {"checkpoint.every", "checkpoint.dir", saving_has_directory},
};

}  // namespace

std::vector<BrokenRule> broken_rules(const RunConfig& run, const std::set<std::string>& unusable) {
  std::vector<BrokenRule> broken;
  for (const Rule& rule : kRules) {
    if (unusable.contains(rule.setting) || unusable.contains(rule.other)) continue;
    std::string problem = rule.problem(run);
    if (!problem.empty()) broken.push_back({rule.setting, std::move(problem)});
  }
  return broken;
}

}  // namespace gxp
