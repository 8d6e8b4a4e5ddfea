// The optimizers: what gxp knows of each but its arithmetic, which is lib/optim's. An optimizer is a
// row in optimizers.inc and a file in lib/optim; settings, rules, messages, the step program,
// checkpoints, memcalc and tests read the table. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "lib/arch/optimizer_state.h"
#include "lib/base/schema.h"

namespace gxp {

// A default that differs from OptimConfig's initialiser, which is AdamW's.
struct OptimizerDefault {
  std::string_view key;    // in the section [optim]
  std::string_view value;  // as TOML writes it
};

struct OptimizerRow {
  std::string_view name;  // optim.name
  // Its state follows from the settings, as whether there is a momentum.
  OptimizerSpec (*spec)(const OptimConfig& optim);
  std::string_view state_in_words;      // for memcalc: "two moments"
  std::string_view rule_in_words = {};  // for the manual, after the name; "": nothing
  std::vector<OptimizerDefault> defaults = {};
  // The settings of [optim] that it has and not all optimizers have.
  std::vector<std::string_view> keys = {};
  std::vector<SettingRule<OptimConfig>> rules = {};

  [[nodiscard]] bool has(std::string_view key) const;
};

const std::vector<OptimizerRow>& optimizers();

// kConfig, with all names, if there is none of that name.
const OptimizerRow& find_optimizer(std::string_view name);
// Those that have a setting of [optim] that not all have; none if all have it.
std::vector<std::string_view> optimizers_with(std::string_view key);

}  // namespace gxp
