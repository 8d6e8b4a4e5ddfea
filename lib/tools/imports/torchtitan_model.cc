// [model], [optimizer] and [lr_scheduler] of torchtitan's TOML. Source: torchtitan/config/job_config.py.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "lib/tools/imports/programs.h"

namespace gxp::torchtitan {
namespace {

void take_model(Importing& in, const KeyRule& rule) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFamilies = {
      {{"llama2", "llama"}, {"llama3", "llama"}, {"llama", "llama"}, {"qwen3", "qwen3"}}};
  const std::string name = to_lower_words(in.value());
  for (const auto& [theirs, ours] : kFamilies) {
    if (name != theirs) continue;
    in.change({{std::string(rule.setting), std::string(ours)}},
              "shape by flavor: give model.init or model.*");
    return;
  }
  in.refuse("gxp has no such family");
}

void take_converters(Importing& in, const KeyRule&) {
  const SourceTree& value = in.value();
  if (is_false(value)) {
    in.ignore("none");
    return;
  }
  bool is_known = value.is_array();
  for (size_t i = 0; is_known && i < value.size(); ++i)
    is_known = value[i] == "float8" || value[i] == "quantize.linear.float8";
  if (is_known)
    in.change({{"train.matmul", "fp8"}}, "gxp's own recipe: see train.matmul");
  else
    in.refuse("of the converters gxp has float8 alone");
}

void take_optimizer(Importing& in, const KeyRule&) {
  const std::string name = to_lower_words(in.value());
  if (name == "adamw" || name == "adam")
    in.map({{"optim.name", name}, {"optim.decay_vectors", true}}, "one group of all parameters");
  else
    in.refuse("gxp has no such optimizer of torchtitan");
}

double peak_of(const Importing& in) { return in.number("optimizer.lr").value_or(8e-4); }

void take_lowest_rate(Importing& in, const KeyRule&) {
  const auto part = to_number(in.value());
  if (part && *part >= 0 && *part <= 1)
    in.map({{"lr_schedule.min_lr", *part * peak_of(in)}}, "a part of lr");
  else
    in.refuse("a part of lr from 0 to 1 was expected");
}

bool has_plateau(const Importing& in) { return in.has("lr_scheduler.decay_ratio"); }

void take_decay_ratio(Importing& in, const KeyRule&) {
  const ConvertedValue part = convert_to("lr_schedule.decay_fraction", in.value());
  if (in.value().is_null())
    in.ignore("not set");
  else if (!part.value)
    in.refuse(part.problem);
  else
    in.map({{"lr_schedule.name", "wsd"}, {"lr_schedule.decay_fraction", *part.value}});
}

void take_decay_type(Importing& in, const KeyRule&) {
  const std::string type = to_lower_words(in.value());
  if (type != "linear" && type != "cosine" && type != "sqrt")
    in.refuse("linear, sqrt or cosine was expected");
  else if (has_plateau(in) && type == "linear")
    in.ignore("with decay_ratio");
  else if (has_plateau(in))
    in.change({}, fmt::format("torchtitan falls by {}; gxp's wsd linearly", type));
  else if (type == "sqrt")
    in.refuse("gxp falls linearly or by a cosine");
  else
    in.map({{"lr_schedule.name", type}});
}

constexpr KeyRule kModelRules[] = {
    {"model.name", take_model, "model.family"},
    {"model.flavor", act::ignore, "", "a shape in torchtitan's code: give it in model.*"},
    {"model.hf_assets_path", act::take, "data.tokenizer", "folder with tokenizer.json"},
    {"model.tokenizer_path", act::take, "data.tokenizer", kOldSpelling},
    {"model.converters", take_converters},
    {"model.norm_type", act::ignore, "", "the family decides it"},
    {"model.print_after_conversion", act::ignore, "", kLogging},
    {"optimizer.name", take_optimizer},
    {"optimizer.lr", act::take, "optim.lr"},
    {"optimizer.beta1", act::take, "optim.beta1"},
    {"optimizer.beta2", act::take, "optim.beta2"},
    {"optimizer.eps", act::take, "optim.eps"},
    {"optimizer.weight_decay", act::take, "optim.weight_decay"},
    {"optimizer.implementation", act::ignore, "", kMeaningless},
    {"optimizer.fused", act::ignore, "", kMeaningless},
    {"optimizer.early_step_in_backward", act::refuse_unless_off, "",
     "gxp clips by the global norm"},
    {"lr_scheduler.decay_ratio", take_decay_ratio},
    {"lr_scheduler.decay_type", take_decay_type},
    {"lr_scheduler.lr_min", take_lowest_rate},
    {"lr_scheduler.min_lr_factor", take_lowest_rate},
    {"lr_scheduler.total_steps", act::take, "lr_schedule.total_steps"},
};

}  // namespace

std::span<const KeyRule> model_rules() { return kModelRules; }

}  // namespace gxp::torchtitan
