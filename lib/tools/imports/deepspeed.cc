// What several keys of a DeepSpeed JSON decide together: "auto", the batch, and the defaults.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/error.h"
#include "lib/tools/imports/programs.h"

namespace gxp::deepspeed {
namespace {

// What "auto" becomes: an argument of the training program, or transformers' default of it.
struct AutoValue {
  std::string_view key;
  std::string_view argument;
  double preset;
};
constexpr std::array kAutoValues = {
    AutoValue{"train_micro_batch_size_per_gpu", "per_device_train_batch_size", 8},
    AutoValue{"gradient_accumulation_steps", "gradient_accumulation_steps", 1},
    AutoValue{"gradient_clipping", "max_grad_norm", 1.0},
    AutoValue{"optimizer.params.lr", "learning_rate", 5e-5},
    AutoValue{"optimizer.params.betas", "adam_beta1", 0.9},
    AutoValue{"optimizer.params.eps", "adam_epsilon", 1e-8},
    AutoValue{"optimizer.params.weight_decay", "weight_decay", 0.0},
    AutoValue{"scheduler.params.warmup_min_lr", "", 0},
    AutoValue{"scheduler.params.warmup_max_lr", "learning_rate", 5e-5},
    AutoValue{"scheduler.params.warmup_num_steps", "warmup_steps", 0},
    AutoValue{"scheduler.params.total_num_steps", "max_steps", 0},
    AutoValue{"fp16.enabled", "fp16", 0},
    AutoValue{"bf16.enabled", "bf16", 0},
    AutoValue{"zero_optimization.stage3_gather_16bit_weights_on_model_save", "", 0},
    AutoValue{"zero_optimization.reduce_bucket_size", "hidden_size", 0},
    AutoValue{"zero_optimization.stage3_prefetch_bucket_size", "hidden_size", 0},
    AutoValue{"zero_optimization.stage3_param_persistence_threshold", "hidden_size", 0},
};
// Arguments that are no row's own.
constexpr std::array<std::string_view, 3> kOtherArguments = {"adam_beta2", "warmup_ratio",
                                                             "mixed_precision"};

const AutoValue* find_auto(std::string_view key) {
  const auto* const row = std::ranges::find(kAutoValues, key, &AutoValue::key);
  return row == kAutoValues.end() ? nullptr : row;
}

SourceTree number_of(std::string_view name, const std::string& text) {
  const auto number = to_number(SourceTree(text));
  if (!number) fail(ErrorKind::kConfig, "--import-arg {}={}: must be a number", name, text);
  const bool is_whole = std::floor(*number) == *number && text.find_first_of(".eE") == text.npos;
  return is_whole ? SourceTree(int64_t(*number)) : SourceTree(*number);
}

// The argument, or the preset.
SourceTree argument_or(const Importing& in, std::string_view name, double preset) {
  const auto text = in.argument(std::string(name));
  if (text) return number_of(name, *text);
  const bool is_whole =
      std::floor(preset) == preset && (name.ends_with("steps") || name.ends_with("size"));
  return is_whole ? SourceTree(int64_t(preset)) : SourceTree(preset);
}

SourceTree warmup_steps_of(const Importing& in) {
  const auto ratio = in.argument("warmup_ratio");
  const auto steps = in.argument("max_steps");
  if (!in.argument("warmup_steps") && ratio && steps) {
    const double share = number_of("warmup_ratio", *ratio).get<double>();
    const double count = std::ceil(share * number_of("max_steps", *steps).get<double>());
    return int64_t(std::clamp(count, 0.0, 2e9));
  }
  return argument_or(in, "warmup_steps", 0);
}

// Of the model's width h: transformers, integrations/deepspeed.py.
SourceTree by_width(const Importing& in, std::string_view key) {
  const auto hidden = in.model_width();
  if (!hidden) return nullptr;
  if (key.ends_with("reduce_bucket_size")) return *hidden * *hidden;
  if (key.ends_with("threshold")) return 10 * *hidden;
  return int64_t(0.9 * double(*hidden) * double(*hidden));
}

bool is_half(const Importing& in, std::string_view type) {
  if (const auto mixed = in.argument("mixed_precision")) return *mixed == type;
  const auto flag = in.argument(std::string(type));
  return flag && is_true(SourceTree(*flag));
}

std::optional<SourceTree> resolve(const Importing& in, const SourceKey& key) {
  const AutoValue* row = find_auto(key.name);
  if (row == nullptr) return std::nullopt;  // and "auto" is no value of its key
  if (row->argument == "hidden_size") return by_width(in, key.name);
  if (row->argument == "fp16" || row->argument == "bf16") return is_half(in, row->argument);
  if (row->argument == "warmup_steps") return warmup_steps_of(in);
  if (row->argument == "max_steps" && !in.argument("max_steps")) return SourceTree(nullptr);
  if (row->argument == "adam_beta1")
    return SourceTree{argument_or(in, "adam_beta1", 0.9), argument_or(in, "adam_beta2", 0.999)};
  if (key.name.ends_with("model_save")) return SourceTree(false);
  if (row->argument.empty()) return SourceTree(int64_t(row->preset));
  return argument_or(in, row->argument, row->preset);
}

// What nobody gave, and was assumed.
void tell_assumed(Importing& in) {
  const std::vector<ImportedKey> keys = in.result().keys;
  for (const ImportedKey& key : keys) {
    const AutoValue* row = key.value == "auto" ? find_auto(key.key) : nullptr;
    const bool is_assumed = row != nullptr && !row->argument.empty() && key.resolved &&
                            !key.resolved->is_null() && row->argument != "hidden_size" &&
                            row->argument != "fp16" && row->argument != "bf16" &&
                            !in.argument(std::string(row->argument));
    if (is_assumed)
      in.assume(key.key,
                fmt::format("no {} is given (--import-arg): transformers' default", row->argument));
  }
}

std::optional<int64_t> size_of_batch(Importing& in, std::string_view key) {
  const SourceTree* value = in.find(key);
  if (value == nullptr || (key == "train_batch_size" && *value == "auto")) return std::nullopt;
  const auto number = to_number(*value);
  return number && std::floor(*number) == *number && std::fabs(*number) < 1e15 ? int64_t(*number)
                                                                               : int64_t{0};
}

void take_batch(Importing& in) {
  const int ranks = in.request().ranks;
  const BatchSizes given{.global = size_of_batch(in, "train_batch_size"),
                         .micro = size_of_batch(in, "train_micro_batch_size_per_gpu"),
                         .grad_accum = size_of_batch(in, "gradient_accumulation_steps"),
                         .ranks = ranks > 0 ? std::optional<int64_t>(ranks) : std::nullopt};
  ImportedBatch batch = solve_batch(given);
  const SourceTree* global = in.find("train_batch_size");
  if (global != nullptr && *global == "auto" && batch.error.empty() && batch.sizes.global > 0)
    in.resolve_key("train_batch_size", batch.sizes.global);
  in.set_batch(std::move(batch));
}

// Whether two of the switches that exclude each other are on.
void check_precision(Importing& in) {
  if (in.is_on("fp16.enabled") && is_brain_float(in)) in.error("fp16 and bf16 are both on");
}

void add_reduction(Importing& in) {
  const bool is_half = in.is_on("fp16.enabled");
  if (in.has("communication_data_type")) return;
  if (!is_half && !is_brain_float(in)) return;
  in.add({.key = "(default) communication_data_type",
          .verdict = Verdict::kChanged,
          .note =
              fmt::format("DeepSpeed reduces in {}; gxp's parallel.reduce_dtype is fp32 unless set",
                          is_half ? "fp16" : "bf16")});
}

void add_optimizer_defaults(Importing& in) {
  const Value* name = in.result().find("optim.name");
  if (name == nullptr) return;
  const std::string& optimizer = std::get<std::string>(*name);
  const bool is_torch = optimizer == "adamw" && in.is_on("optimizer.params.torch_adam");
  if (optimizer == "muon") {
    in.set_default("optim.lr", 0.02);
    in.set_default("optim.momentum", 0.95);
    in.set_default("optim.adamw_lr_ratio", 1.0);
  } else if (optimizer != "sgd") {
    in.set_default("optim.beta1", 0.9);
    in.set_default("optim.beta2", 0.999);
    if (optimizer != "lion") in.set_default("optim.eps", 1e-8);
  }
  in.set_default("optim.lr", 1e-3);
  in.set_default("optim.weight_decay", is_torch ? 0.01 : 0.0);
}

double peak_of(const Importing& in) {
  const Value* rate = in.result().find("optim.lr");
  return rate == nullptr ? 1e-3 : std::get<double>(*rate);
}

void add_schedule_defaults(Importing& in) {
  const Value* name = in.result().find("lr_schedule.name");
  if (!in.has("scheduler.type")) {
    if (!in.request().has_schedule)
      in.set_default("lr_schedule.name", "constant",
                     "constant, unless the training program has its own");
  } else if (name != nullptr) {
    in.set_default("lr_schedule.warmup_steps", int64_t{1000});
    if (*name == Value("linear") && !in.has("scheduler.params.warmup_max_lr"))
      in.set("optim.lr", 1e-3);  // WarmupDecayLR's own default, which wins over the optimizer's
    if (*name == Value("cosine")) in.set_default("lr_schedule.min_lr", 1e-4 * peak_of(in));
  }
}

void warn_of_warmup(Importing& in) {
  const auto warmup = in.number("scheduler.params.warmup_num_steps");
  const auto total = in.number("scheduler.params.total_num_steps");
  if (warmup && total && *total < *warmup)
    in.add({.key = "scheduler.params",
            .verdict = Verdict::kWarning,
            .note = "total_num_steps is below warmup_num_steps"});
}

}  // namespace

void judge(Importing& in) {
  if (const SourceTree* zero = in.find("zero_optimization"); zero != nullptr && zero->is_boolean())
    in.rename("zero_optimization", "zero_optimization.stage",
              SourceTree(zero->get<bool>() ? 1 : 0));
  in.resolve_auto(resolve);
  take_batch(in);
  check_precision(in);
  in.judge(rules(), true);
  tell_assumed(in);
  add_reduction(in);
  in.set_default("optim.clip", 1.0);
  warn_of_warmup(in);
  add_optimizer_defaults(in);
  add_schedule_defaults(in);
}

}  // namespace gxp::deepspeed

namespace gxp {

std::vector<std::string> import_arguments() {
  std::vector<std::string> names(deepspeed::kOtherArguments.begin(),
                                 deepspeed::kOtherArguments.end());
  for (const deepspeed::AutoValue& row : deepspeed::kAutoValues) {
    const std::string name(row.argument);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace gxp
