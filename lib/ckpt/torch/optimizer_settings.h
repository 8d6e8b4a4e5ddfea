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

// Whether the weight belongs to the group whose weights decay: matrices, and with
// optim.decay_vectors all.
bool decays(const TensorInfo& weight, const KeyValues& config);

// All of a group but its parameters; torch's defaults where `config` does not tell. `decays`:
// whether weight decay applies to the group.
std::vector<OptimizerSetting> adam_settings(const KeyValues& config, bool decays);
std::vector<OptimizerSetting> sgd_settings(const KeyValues& config, bool decays);

// A group of "param_groups" as it is, but for "params" and "param_names". What is no None, flag,
// number, text, or list of such is added to `lost` in words. kCorrupt, naming `where`.
ParameterGroup read_parameter_group(PickleValue group, std::vector<std::string>& lost,
                                    const std::string& where);
// One setting of it; nothing if it cannot be kept.
std::optional<std::string> setting_json(PickleValue value);
// As it was read.
void put_setting_json(PickleWriter& pickle, const std::string& json);

void put_setting(PickleWriter& pickle, const OptimizerSetting& setting);

// What the groups of parameters of a file say, for what continues the run.
class OptimizerGroups {
 public:
  // One setting of one group. What a run's configuration does not have is passed over.
  void add(std::string_view key, PickleValue value);
  // "param_groups": all settings of all groups. kCorrupt, naming `where`.
  void add_all(PickleValue groups, const std::string& where);
  // Puts optim.beta1, beta2, eps, weight_decay, ... into `config` and kLastRate into `state`,
  // unless `tensors` has a configuration. Of two weight decays, one of 0 is that of vectors;
  // otherwise vectors have the same one (optim.decay_vectors). Settings that differ among the
  // groups are not among them, and the log says so.
  void finish(NamedTensors& tensors) const;

 private:
  std::map<std::string_view, std::set<std::string>> values_;  // by key of the configuration
};

}  // namespace gxp
