#include "lib/ckpt/huggingface/model_check.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

bool has_position_table(const ModelConfig& model) {
  return !find_family(model.family).has("rope_theta");
}

// Sizes that a 0 leaves to others, filled in.
ModelConfig with_sizes(ModelConfig model) {
  model.kv_heads = model.kv_head_count();
  model.head_size = model.channels_per_head();
  model.mlp_hidden = int(model.mlp_width());
  return model;
}

// What the file tells of its model: the settings that came with the tensors, or its config.json's.
KeyValues told_settings(const NamedTensors& tensors) {
  if (find_value(tensors.config, "model.family")) return tensors.config;
  const auto text = tensors.metadata.find(kConfigText);
  return text == tensors.metadata.end() ? tensors.config
                                        : read_model_config(text->second, kConfigText);
}

// Puts the values of model.* into `run`, and the settings into `taken`. Returns "" or what is wrong
// with one.
std::string take_settings(const KeyValues& told, RunConfig& run,
                          std::vector<const Setting*>& taken) {
  constexpr std::string_view kSection = "model.";
  for (const auto& [key, text] : told) {
    if (!key.starts_with(kSection) || key == "model.init") continue;
    const Setting* setting = find_setting("model", std::string_view(key).substr(kSection.size()));
    auto value = parse_toml_value(text);
    if (setting == nullptr || !value) return fmt::format("{} = {} is not supported", key, text);
    if (const auto problem = accept(*setting, *value); !problem.empty())
      return fmt::format("{} {}", key, problem);
    setting->set(run, *value);
    taken.push_back(setting);
  }
  return "";
}

std::string setting_mismatch(const KeyValues& told, const ModelConfig& model) {
  RunConfig ours, theirs;
  ours.model = theirs.model = model;
  std::vector<const Setting*> taken;
  if (auto problem = take_settings(told, theirs, taken); !problem.empty()) return problem;
  if (theirs.model.family == model.family) {  // else sizes have other meanings
    ours.model = with_sizes(ours.model);
    theirs.model = with_sizes(theirs.model);
  }
  std::vector<std::string> differing;
  for (const Setting* setting : taken) {
    if (setting->key == "context" && !has_position_table(model)) continue;
    if (setting->key != "family" && theirs.model.family != model.family) continue;
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
  std::vector<const Setting*> taken;
  if (!take_settings(told, run, taken).empty()) return std::nullopt;
  for (const auto& size : find_family(run.model.family).huggingface.sizes)
    if (!size.optional && !find_value(told, size.ours)) return std::nullopt;
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
  const NamedTensors named = with_gpt2_prefix(tensors);
  WeightsByName weights;
  for (const NamedTensor& tensor : named.tensors)
    if (tensor.info.role == Role::kWeight) weights.emplace(tensor.info.name, &tensor);
  const Architecture architecture = make_architecture(model);
  for (const UnitSpec& unit : architecture.units)
    for (const TensorSpec& spec : unit.tensors)
      if (auto problem = weight_mismatch(weights, spec); !problem.empty()) return problem;
  const std::string& table = architecture.units.front().tensors.front().name;
  const auto head = weights.find(kHeadName);
  if (ties_head(model) && head != weights.end() && !are_equal(*head->second, *weights.at(table)))
    return fmt::format("the head is tied, but {} is not {}", kHeadName, table);
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
  std::vector<std::string_view> keys = {"model.heads", "model.norm_eps"};
  if (find_family(model.family).has("rope_theta")) keys.emplace_back("model.rope_theta");
  const KeyValues told = told_settings(tensors);
  std::erase_if(keys, [&](std::string_view key) { return find_value(told, key).has_value(); });
  return joined(keys, ", ");
}

}  // namespace gxp
