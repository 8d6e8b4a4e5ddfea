#include "lib/ckpt/torch/optimizer_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lib/base/json/json.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

constexpr const char* kTuple = "tuple";  // in OptimizerRecord

double setting_number(const KeyValues& config, std::string_view key, double otherwise) {
  const auto value = find_value(config, key);
  if (!value) return otherwise;
  char* end = nullptr;
  const double number = std::strtod(value->c_str(), &end);
  return end == value->c_str() || *end != '\0' ? otherwise : number;
}

// Numbers and flags whose values TOML has as they are.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kGroupSettings = {
    {{"lr", kLastRate},
     {"initial_lr", "optim.lr"},  // torch's schedulers keep it
     {"eps", "optim.eps"},
     {"weight_decay", "optim.weight_decay"},
     {"momentum", "optim.momentum"},
     {"dampening", "optim.dampening"},
     {"nesterov", "optim.nesterov"},
     {"clip_grad", "optim.clip"}}};  // DeepSpeed's, of the whole optimizer

// "" for what is neither a number nor a flag, as a tensor.
std::string setting_text(PickleValue value) {
  if (value.is(PickleKind::kBool)) return value.boolean() ? "true" : "false";
  if (value.is(PickleKind::kInteger)) return fmt::format("{}", value.integer());
  return value.is(PickleKind::kFloat) ? fmt::format("{}", value.real()) : "";
}

// Of one that is no container; nothing for what JSON has no word for.
std::optional<Json> scalar_json(PickleValue value) {
  if (value.is_none()) return Json(nullptr);
  if (value.is(PickleKind::kBool)) return Json(value.boolean());
  if (value.is(PickleKind::kInteger)) return Json(value.integer());
  if (value.is(PickleKind::kFloat) && std::isfinite(value.real())) return Json(value.real());
  if (value.is(PickleKind::kText)) return Json(std::string(value.text()));
  return std::nullopt;
}

void put_json(PickleWriter& pickle, const Json& value) {
  if (value.is_null()) return pickle.none();
  if (value.is_boolean()) return pickle.boolean(value.get<bool>());
  if (value.is_number_float()) return pickle.real(value.get<double>());
  if (value.is_number()) return pickle.integer(value.get<int64_t>());
  if (value.is_string()) return pickle.text(value.get<std::string>());
  const bool is_tuple = value.is_object();
  is_tuple ? pickle.begin_tuple() : pickle.begin_list();
  for (const Json& part : is_tuple ? value.at(kTuple) : value) put_json(pickle, part);
  is_tuple ? pickle.end_tuple() : pickle.end_list();
}

}  // namespace

std::optional<std::string> setting_json(PickleValue value) {
  const bool is_tuple = value.is(PickleKind::kTuple);
  if (!is_tuple && !value.is(PickleKind::kList)) {
    const auto scalar = scalar_json(value);
    return scalar ? std::optional(scalar->dump()) : std::nullopt;
  }
  Json list = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    const auto part = scalar_json(value.item(i));
    if (!part) return std::nullopt;
    list.push_back(*part);
  }
  if (!is_tuple) return list.dump();
  Json tuple;
  tuple[kTuple] = list;
  return tuple.dump();
}

ParameterGroup read_parameter_group(PickleValue group, std::vector<std::string>& lost,
                                    const std::string& where) {
  ParameterGroup result;
  to_dict(group, where);
  for (size_t i = 0; i < group.size(); ++i) {
    const std::string key = to_text(group.key(i), where);
    if (key == "params" || key == "param_names") continue;
    if (auto json = setting_json(group.value(i))) {
      result.settings.emplace_back(key, std::move(*json));
    } else {
      lost.push_back(fmt::format("the setting {} of a group of parameters, {}", key,
                                 group.value(i).describe()));
    }
  }
  return result;
}

void put_setting_json(PickleWriter& pickle, const std::string& json) {
  put_json(pickle, parse_json(json, "a setting of the optimizer"));
}

bool decays(const TensorInfo& weight, const KeyValues& config) {
  return weight.shape.size() >= 2 || find_value(config, "optim.decay_vectors") == "true";
}

std::vector<OptimizerSetting> adam_settings(const KeyValues& config, bool decays) {
  const auto number = [&](std::string_view key, double otherwise) {
    return setting_number(config, key, otherwise);
  };
  const std::array<double, 2> betas = {number("optim.beta1", 0.9), number("optim.beta2", 0.999)};
  return {{"lr", number("optim.lr", 1e-3)},
          {"weight_decay", decays ? number("optim.weight_decay", 1e-2) : 0},
          {"betas", betas},
          {"eps", number("optim.eps", 1e-8)},
          {"amsgrad", false},
          {"capturable", false},
          {"maximize", false},
          {"differentiable", false},
          {"foreach"},
          {"fused"},
          {"decoupled_weight_decay", find_value(config, "optim.name") != "\"adam\""}};
}

std::vector<OptimizerSetting> sgd_settings(const KeyValues& config, bool decays) {
  const auto number = [&](std::string_view key, double otherwise) {
    return setting_number(config, key, otherwise);
  };
  return {{"lr", number("optim.lr", 1e-3)},
          {"weight_decay", decays ? number("optim.weight_decay", 0) : 0},
          {"momentum", number("optim.momentum", 0)},
          {"dampening", number("optim.dampening", 0)},
          {"nesterov", find_value(config, "optim.nesterov") == "true"},
          {"maximize", false},
          {"differentiable", false},
          {"foreach"},
          {"fused"}};
}

void put_setting(PickleWriter& pickle, const OptimizerSetting& setting) {
  if (const auto* flag = std::get_if<bool>(&setting.value)) {
    pickle.boolean(*flag);
  } else if (const auto* number = std::get_if<double>(&setting.value)) {
    pickle.real(*number);
  } else if (const auto* pair = std::get_if<std::array<double, 2>>(&setting.value)) {
    pickle.begin_tuple();
    for (const double part : *pair) pickle.real(part);
    pickle.end_tuple();
  } else {
    pickle.none();
  }
}

void OptimizerGroups::add(std::string_view key, PickleValue value) {
  const auto put = [&](std::string_view ours, std::string text) {
    if (!text.empty()) values_[ours].insert(std::move(text));
  };
  if (key == "betas" && (value.is(PickleKind::kTuple) || value.is(PickleKind::kList)) &&
      value.size() == 2) {
    put("optim.beta1", setting_text(value.item(0)));
    put("optim.beta2", setting_text(value.item(1)));
  } else if (key == "decoupled_weight_decay" && value.is(PickleKind::kBool)) {
    put("optim.name", value.boolean() ? "\"adamw\"" : "\"adam\"");
  } else if (const auto* known = std::ranges::find(
                 kGroupSettings, key, &std::pair<std::string_view, std::string_view>::first);
             known != kGroupSettings.end()) {
    put(known->second, setting_text(value));
  }
}

void OptimizerGroups::add_all(PickleValue groups, const std::string& where) {
  to_sequence(groups, where + ": param_groups");
  for (size_t g = 0; g < groups.size(); ++g) {
    const PickleValue group = to_dict(groups.item(g), where + ": param_groups");
    for (size_t i = 0; i < group.size(); ++i)
      if (group.key(i).is(PickleKind::kText)) add(group.key(i).text(), group.value(i));
  }
}

void OptimizerGroups::finish(NamedTensors& tensors) const {
  if (!tensors.config.empty()) return;
  for (auto [key, texts] : values_) {
    const bool is_decay = key == "optim.weight_decay";
    if (is_decay && texts != std::set<std::string>{"0"}) {
      const bool of_vectors = texts.erase("0") == 0;
      tensors.config.emplace_back("optim.decay_vectors", of_vectors ? "true" : "false");
    }
    if (texts.size() > 1) {
      log_info("the optimizer's parameter groups differ in {}: {}; gxp has one value for all", key,
               joined(texts, ", "));
      continue;
    }
    (key == kLastRate ? tensors.state : tensors.config).emplace_back(key, *texts.begin());
  }
}

}  // namespace gxp
