// The settings that torch.optim's AdamW and SGD keep with a group of parameters, as a run's
// configuration has them, and back.
// Source: torch 2.15, torch/optim/adamw.py, sgd.py.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/pickle_writer.h"

namespace gxp {

struct OptimizerSetting {
  std::string_view key;  // "lr"
  // monostate: None.
  std::variant<std::monostate, bool, double, std::array<double, 2>> value = {};
};

// Whether weight decay applies to the weight: to matrices, or with optim.decay_vectors to all
// weights.
bool decays(const TensorInfo& weight, const KeyValues& config);

// All settings of a group of parameters; torch's defaults where `config` has none. `decays`:
// whether weight decay applies to the group.
std::vector<OptimizerSetting> adam_settings(const KeyValues& config, bool decays);
std::vector<OptimizerSetting> sgd_settings(const KeyValues& config, bool decays);

// A group of "param_groups" as it is, without "params" and "param_names". A setting that is not
// None, a flag, a number, a text or a list of these is described in `lost` instead. kCorrupt,
// naming `where`.
ParameterGroup read_parameter_group(PickleValue group, std::vector<std::string>& lost,
                                    const std::string& where);
// One setting of it; nothing if it cannot be kept.
std::optional<std::string> setting_json(PickleValue value);
// As it was read.
void put_setting_json(PickleWriter& pickle, const std::string& json);

void put_setting(PickleWriter& pickle, const OptimizerSetting& setting);

// Collects the settings of a file's groups of parameters, from which a run continues.
class OptimizerGroups {
 public:
  // One setting of one group. Ignored if a run's configuration has no such setting.
  void add(std::string_view key, PickleValue value);
  // "param_groups": all settings of all groups. kCorrupt, naming `where`.
  void add_all(PickleValue groups, const std::string& where);
  // Puts optim.beta1, beta2, eps, weight_decay, ... into `config` and kLastRate into `state`,
  // unless `tensors` has a configuration. If groups have two weight decays of which one is 0, that
  // one is for vectors; with one weight decay, vectors decay too (optim.decay_vectors). Other
  // settings that differ among the groups are left out, and the log says so.
  void finish(NamedTensors& tensors) const;

 private:
  std::map<std::string_view, std::set<std::string>> values_;  // by key of the configuration
};

}  // namespace gxp
