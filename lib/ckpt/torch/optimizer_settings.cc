#include "lib/ckpt/torch/optimizer_settings.h"

#include <cstdlib>

namespace gxp {
namespace {

double setting_number(const KeyValues& config, std::string_view key, double otherwise) {
  const auto value = find_value(config, key);
  if (!value) return otherwise;
  char* end = nullptr;
  const double number = std::strtod(value->c_str(), &end);
  return end == value->c_str() || *end != '\0' ? otherwise : number;
}

}  // namespace

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

}  // namespace gxp
