// Steps, schedule and optimizer of Hugging Face's Trainer. Source: transformers 5.24.0,
// training_args.py, optimization.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/tools/imports/programs.h"

namespace gxp::trainer {
namespace {

bool is_by_steps(const Importing& in, const char* key, bool preset) {
  const SourceTree* value = in.find(key);
  if (value == nullptr) return preset;
  return to_lower_words(*value) == "steps";
}

}  // namespace

bool counts_steps(const Importing& in) {
  const double steps = in.number("max_steps").value_or(-1);
  return steps > 0 && steps < 2e9;
}

bool validates(const Importing& in) {
  return is_by_steps(in, "eval_strategy", is_by_steps(in, "evaluation_strategy", false));
}

bool saves(const Importing& in) { return is_by_steps(in, "save_strategy", true); }

namespace {

void take_max_steps(Importing& in, const KeyRule& rule) {
  if (to_number(in.value()).value_or(-1) > 0)
    in.take_value(rule.setting, "wins over num_train_epochs");
  else
    in.ignore("-1: num_train_epochs counts");
}

void take_epochs(Importing& in, const KeyRule&) {
  if (counts_steps(in))
    in.ignore("max_steps wins");
  else
    in.change({}, "steps = epochs x rows of data / global batch, rounded up: needs the data");
}

// A number of steps, or below 1 a share of them, rounded up.
void take_steps(Importing& in, const KeyRule& rule) {
  const auto steps = to_number(in.value());
  const bool is_share = steps && *steps > 0 && *steps < 1;
  if (!is_share)
    in.take_value(rule.setting, rule.note);
  else if (const auto total = in.number("max_steps"); counts_steps(in))
    in.map({{std::string(rule.setting), int64_t(std::ceil(*steps * *total))}},
           "below 1: a share of the steps (rounded up)");
  else
    in.map({}, "below 1: a share of the steps (rounded up)");
}

bool warms_up(const Importing& in) { return in.word("lr_scheduler_type") != "constant"; }

void take_warmup(Importing& in, const KeyRule& rule) {
  if (!warms_up(in))
    in.ignore("lr_scheduler_type constant does not warm up");
  else
    take_steps(in, rule);
}

void take_warmup_ratio(Importing& in, const KeyRule& rule) {
  const auto ratio = to_number(in.value());
  const std::string note =
      "a share of the steps, rounded up; gone in transformers 5, where warmup_steps below 1 means "
      "it";
  if (!ratio || *ratio < 0 || *ratio > 1)
    in.refuse("a share from 0 to 1 was expected");
  else if (*ratio == 0 || in.number("warmup_steps").value_or(0) > 0 || !warms_up(in))
    in.ignore(*ratio == 0 ? "0" : "warmup_steps or lr_scheduler_type wins");
  else if (counts_steps(in))
    in.map({{std::string(rule.setting), int64_t(std::ceil(*ratio * *in.number("max_steps")))}},
           note);
  else
    in.change({}, note + ": needs max_steps");
}

struct NamePair {
  std::string_view theirs, ours;
};

void take_schedule(Importing& in, const KeyRule& rule) {
  constexpr std::array kNames = {
      NamePair{"linear", "linear"}, NamePair{"cosine", "cosine"}, NamePair{"constant", "constant"},
      NamePair{"constant_with_warmup", "warmup"}, NamePair{"cosine_with_min_lr", "cosine"}};
  const std::string type = to_lower_words(in.value());
  const auto* const row = std::ranges::find(kNames, type, &NamePair::theirs);
  const bool lacks_end = type == "cosine_with_min_lr" && !in.number("lr_scheduler_kwargs.min_lr") &&
                         !in.number("lr_scheduler_kwargs.min_lr_rate");
  if (row == kNames.end())
    in.refuse("no such schedule");
  else if (lacks_end)
    in.refuse("needs min_lr or min_lr_rate in lr_scheduler_kwargs, in transformers, too");
  else
    in.map({{std::string(rule.setting), std::string(row->ours)}},
           type == "cosine_with_min_lr" ? "min_lr in lr_scheduler_kwargs" : "");
}

double peak_of(const Importing& in) { return in.number("learning_rate").value_or(5e-5); }

void take_lowest_rate(Importing& in, const KeyRule& rule) {
  const auto value = to_number(in.value());
  const bool is_rate = in.name().ends_with("min_lr");
  if (in.word("lr_scheduler_type") != "cosine_with_min_lr" || !value || *value < 0)
    in.refuse("for cosine_with_min_lr");
  else
    in.map({{std::string(rule.setting), is_rate ? *value : *value * peak_of(in)}});
}

void take_optimizer(Importing& in, const KeyRule& rule) {
  constexpr std::array kNames = {NamePair{"adamw_torch_fused", "adamw"},
                                 NamePair{"adamw_torch", "adamw"},
                                 NamePair{"adamw_hf", "adamw"},
                                 NamePair{"adamw_apex_fused", "adamw"},
                                 NamePair{"adamw_torch_xla", "adamw"},
                                 NamePair{"adamw_torch_npu_fused", "adamw"},
                                 NamePair{"sgd", "sgd"},
                                 NamePair{"lion_32bit", "lion"}};
  const std::string name = to_lower_words(in.value());
  const auto* const row = std::ranges::find(kNames, name, &NamePair::theirs);
  const bool is_small = name.find("8bit") != std::string::npos ||
                        name.find("4bit") != std::string::npos || name.starts_with("paged");
  if (row != kNames.end())
    in.map({{std::string(rule.setting), std::string(row->ours)}});
  else if (is_small)
    in.refuse("8-bit and paged optimizers are not there");
  else
    in.refuse("gxp has no " + name + " of this form");
}

// Of Adam's parameters, which most other optimizers lack.
void take_adam_value(Importing& in, const KeyRule& rule) {
  const std::string optimizer = in.word("optim");
  const bool is_lion = optimizer.starts_with("lion") && rule.setting != "optim.eps";
  if (optimizer.empty() || optimizer.starts_with("adam") || is_lion)
    in.take_value(rule.setting);
  else
    in.ignore("this optimizer has no such parameter");
}

// eval_strategy and save_strategy: "no", "steps", "epoch".
void take_strategy(Importing& in, const KeyRule& rule) {
  const std::string word = is_false(in.value()) ? "no" : to_lower_words(in.value());
  const bool is_save = rule.setting == "checkpoint.every";
  if (word == "steps")
    in.map({}, is_save ? "every save_steps" : "every eval_steps");
  else if (word == "no" && is_save)
    in.change({}, "gxp saves one checkpoint at the end if checkpoint.dir is set");
  else if (word == "no")
    in.ignore("off");
  else if (word == "epoch" || word == "best")
    in.change({}, fmt::format("give {}", rule.setting));
  else
    in.refuse("no, steps or epoch was expected");
}

void take_eval_steps(Importing& in, const KeyRule& rule) {
  if (validates(in) && !is_false(in.value()))
    take_steps(in, rule);
  else
    in.ignore("with eval_strategy steps");
}

void take_save_steps(Importing& in, const KeyRule& rule) {
  if (saves(in))
    take_steps(in, rule);
  else
    in.ignore("with save_strategy steps");
}

void take_kept(Importing& in, const KeyRule& rule) {
  if (in.value().is_null())
    in.map({{std::string(rule.setting), int64_t{0}}}, "null: all");
  else
    in.take_value(rule.setting);
}

constexpr KeyRule kStepRules[] = {
    {"max_steps", take_max_steps, "train.steps"},
    {"num_train_epochs", take_epochs},
    {"learning_rate", act::take, "optim.lr"},
    {"lr_scheduler_type", take_schedule, "lr_schedule.name"},
    {"lr_scheduler_kwargs.min_lr", take_lowest_rate, "lr_schedule.min_lr"},
    {"lr_scheduler_kwargs.min_lr_rate", take_lowest_rate, "lr_schedule.min_lr"},
    {"lr_scheduler_kwargs.*", act::refuse, "", "gxp's schedules have no such parameter"},
    {"warmup_steps", take_warmup, "lr_schedule.warmup_steps"},
    {"warmup_ratio", take_warmup_ratio, "lr_schedule.warmup_steps"},
    {"optim", take_optimizer, "optim.name"},
    {"weight_decay", act::take, "optim.weight_decay",
     "Trainer leaves biases and norms out, as gxp without decay_vectors"},
    {"adam_beta1", take_adam_value, "optim.beta1"},
    {"adam_beta2", take_adam_value, "optim.beta2"},
    {"adam_epsilon", take_adam_value, "optim.eps"},
    {"logging_steps", take_steps, "train.log_every"},
    {"eval_strategy", take_strategy, "train.valid_every"},
    {"evaluation_strategy", take_strategy, "train.valid_every", kOldSpelling},
    {"eval_steps", take_eval_steps, "train.valid_every"},
    {"save_strategy", take_strategy, "checkpoint.every"},
    {"save_steps", take_save_steps, "checkpoint.every"},
    {"save_total_limit", take_kept, "checkpoint.keep"},
};

}  // namespace

std::span<const KeyRule> step_rules() { return kStepRules; }

}  // namespace gxp::trainer
