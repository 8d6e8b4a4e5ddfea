// The settings that torch.optim's AdamW and SGD keep with a group of parameters, as a run's
// configuration has them; torch's defaults where it does not tell.
// Source: torch 2.15, torch/optim/adamw.py, sgd.py.
#pragma once

#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/pickle_writer.h"

namespace gxp {

struct OptimizerSetting {
  std::string_view key;  // "lr"
  // monostate: None.
  std::variant<std::monostate, bool, double, std::array<double, 2>> value = {};
};

// All of a group but its parameters. `decays`: whether weight decay applies to the group.
std::vector<OptimizerSetting> adam_settings(const KeyValues& config, bool decays);
std::vector<OptimizerSetting> sgd_settings(const KeyValues& config, bool decays);

void put_setting(PickleWriter& pickle, const OptimizerSetting& setting);

}  // namespace gxp
