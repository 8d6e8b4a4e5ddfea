#include "lib/ckpt/huggingface/model_check.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/json/json.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/config/model_source.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

// What the function depends on and no tensor shows, in the order of messages. The settings that go
// with rope_scaling are recorded where it is.
constexpr std::string_view kUnseen[] = {"heads",
                                        "norm_eps",
                                        "activation",
                                        "parallel_residual",
                                        "rope_theta",
                                        "rope_local_theta",
                                        "rope_partial",
                                        "rope_scaling",
                                        "unrotated_layers",
                                        "window",
                                        "attention_scale",
                                        "attention_scale_by_layer",
                                        "score_cap",
                                        "logit_cap",
                                        "embedding_scale",
                                        "residual_scale",
                                        "logit_divisor",
                                        "pad_token"};

// What the file tells of its model: the settings that came with the tensors, or its config.json's.
KeyValues told_settings(const NamedTensors& tensors) {
  if (find_value(tensors.config, "model.family")) return tensors.config;
  const auto text = tensors.metadata.find(kConfigText);
  return text == tensors.metadata.end() ? tensors.config
                                        : read_model_config(text->second, kConfigText);
}

std::string setting_mismatch(const KeyValues& told, const ModelConfig& model) {
  RunConfig ours, theirs;
  ours.model = theirs.model = model;
  std::vector<const Setting*> taken;
  if (auto problem = take_settings("model", told, theirs, &taken); !problem.empty()) return problem;
  const Family& family = find_family(model.family);
  const bool same_family = theirs.model.family == model.family;  // else settings mean other things
  if (same_family) {
    ours.model = ours.model.resolved();
    theirs.model = theirs.model.resolved();
  }
  std::vector<std::string> differing;
  for (const Setting* setting : taken) {
    if (setting->key == "context" && !family.kind.position_table) continue;
    if (setting->key != "family" && !same_family) continue;
    if (!setting->owners.empty() && !family.has(setting->key)) continue;
    const Value there = setting->get(theirs), now = setting->get(ours);
    if (there != now)
      differing.push_back(fmt::format("{} is {} there and {} in this run", setting->name(),
                                      to_toml(there), to_toml(now)));
  }
  if (differing.empty()) return "";
  return fmt::format("{}; set [model] as it is there", joined(differing, ", "));
}

// The model that the file tells, if it tells all of it that has no default.
std::optional<ModelConfig> told_model(const KeyValues& told) {
  RunConfig run;
  if (!missing_size(told).empty() || !take_settings("model", told, run).empty() ||
      !first_model_problem(run.model).empty())
    return std::nullopt;
  return run.model;
}

std::string unread_mismatch(const NamedTensors& tensors, const ModelConfig& model) {
  const auto unread = weights_without_place(tensors, model);
  if (unread.empty()) return "";
  const auto others = unread.size() == 1 ? "" : fmt::format(" (and {} more)", unread.size() - 1);
  return fmt::format("it has the weight {}{}, which is not part of gxp's {}", unread.front(),
                     others, model.family);
}

using WeightsByName = std::map<std::string_view, const NamedTensor*>;

std::string weight_mismatch(const WeightsByName& weights, const TensorSpec& spec) {
  const auto found = weights.find(spec.name);
  if (found == weights.end())
    return fmt::format(
        "tensor {} is missing; does [model] in the run file describe this checkpoint?", spec.name);
  const std::vector<uint64_t> shape(spec.shape.begin(), spec.shape.end());
  if (found->second->info.shape == shape) return "";
  return fmt::format("the weight {} has the shape ({}), [model] requires ({})", spec.name,
                     joined(found->second->info.shape, ", "), joined(shape, ", "));
}

std::string tensor_mismatch(const NamedTensors& tensors, const ModelConfig& model) {
  const NamedTensors named = with_family_names(tensors, model);
  WeightsByName weights;
  for (const NamedTensor& tensor : named.tensors)
    if (tensor.info.role == Role::kWeight) weights.emplace(tensor.info.name, &tensor);
  const Architecture architecture = make_architecture(model);
  for (const UnitSpec& unit : architecture.units)
    for (const TensorSpec& spec : unit.tensors)
      if (auto problem = weight_mismatch(weights, spec); !problem.empty()) return problem;
  if (auto problem = tied_head_problem(named, model); !problem.empty()) return problem;
  return unread_mismatch(tensors, model);
}

// The weights without a place in the model that the file tells.
std::string homeless_weights(const NamedTensors& tensors) {
  const auto model = told_model(told_settings(tensors));
  if (!model || uint64_t(model->layers) > tensors.tensors.size()) return "";  // others say so
  return unread_mismatch(tensors, *model);
}

}  // namespace

std::string foreign_model(const NamedTensors& tensors) {
  const auto text = tensors.metadata.find(kConfigText);
  if (text != tensors.metadata.end())
    if (auto reason = describe_obstacle(text->second, kConfigText); !reason.empty()) return reason;
  return homeless_weights(tensors);
}

std::string quantization_of(const NamedTensors& tensors) {
  const auto text = tensors.metadata.find(kConfigText);
  if (text == tensors.metadata.end()) return "";
  const Json how =
      parse_python_json(text->second, kConfigText).value("quantization_config", Json());
  return how.is_null() ? "" : write_python_json(how);
}

std::string model_mismatch(const NamedTensors& tensors, const ModelConfig& model) {
  if (const auto reason = foreign_model(tensors); !reason.empty())
    return fmt::format("gxp does not implement its model: {}", reason);
  if (auto problem = setting_mismatch(told_settings(tensors), model); !problem.empty())
    return problem;
  return tensor_mismatch(tensors, model);
}

std::string model_problem(const NamedTensors& tensors) {
  if (auto reason = foreign_model(tensors); !reason.empty()) return reason;
  const auto model = told_model(told_settings(tensors));
  if (!model) return "";
  if (uint64_t(model->layers) > tensors.tensors.size())
    return fmt::format("it has {} tensors, too few for {} layers", tensors.tensors.size(),
                       model->layers);
  return model_mismatch(tensors, *model);
}

std::string unrecorded_settings(const NamedTensors& tensors, const ModelConfig& model) {
  const Family& family = find_family(model.family);
  const KeyValues told = told_settings(tensors);
  std::vector<std::string> names;
  for (const std::string_view key : kUnseen) {
    const Setting& setting = *find_setting("model", key);
    const bool is_own = setting.owners.empty() || family.has(key);
    if (is_own && !find_value(told, setting.name())) names.push_back(setting.name());
  }
  return joined(names, ", ");
}

}  // namespace gxp
