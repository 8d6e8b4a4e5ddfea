#include "lib/ckpt/huggingface/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/arch/config_json/config_json.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/ckpt/huggingface/config_spelling.h"
#include "lib/config/model_source.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

constexpr const char* kAct = "take the model's settings";

// Settings without which nothing is known of a model's size.
constexpr std::array kSizes = {"model.vocab_size", "model.context", "model.hidden", "model.layers",
                               "model.heads"};

const char* torch_dtype(StorageDType dtype) {
  switch (dtype) {
    case StorageDType::kF64:
      return "float64";
    case StorageDType::kF16:
      return "float16";
    case StorageDType::kBF16:
      return "bfloat16";
    default:
      return "float32";
  }
}

Json parse_config(std::string_view text, const std::string& path) {
  Json config = parse_python_json(text, path);
  to_object(config, "read " + path);
  return config;
}

void set_dtype(Json& config, StorageDType dtype) {
  config["dtype"] = config["torch_dtype"] = torch_dtype(dtype);  // transformers 5 and 4
}

bool has_setting(const Family& family, const Setting& setting) {
  return setting.section == "model" && setting.key != "init" && setting.key != "config" &&
         (setting.owners.empty() || family.has(setting.key));
}

// Checkpoints of gxp 0.1 say of GPT-2, whose head was always tied, that it is not; they have no
// setting of the activation.
bool is_old_gpt2(const KeyValues& told) {
  return find_value(told, "model.family") == "\"gpt2\"" && !find_value(told, "model.activation");
}

}  // namespace

KeyValues read_model_config(std::string_view text, const std::string& path) {
  const ModelReading reading = read_checked_model(parse_config(text, path));
  return reading.obstacle.empty() ? settings_of(reading.model) : KeyValues();
}

std::string describe_obstacle(std::string_view text, const std::string& path) {
  return read_checked_model(parse_config(text, path)).obstacle;
}

std::string describe_dropout(std::string_view text, const std::string& path) {
  return describe_dropout(parse_config(text, path));
}

KeyValues settings_of(const ModelConfig& model) {
  RunConfig run;
  run.model = model;
  const Family& family = find_family(model.family);
  KeyValues told;
  for (const Setting& setting : settings())
    if (has_setting(family, setting)) told.emplace_back(setting.name(), to_toml(setting.get(run)));
  return told;
}

std::string take_settings(std::string_view section, const KeyValues& told, RunConfig& run,
                          std::vector<const Setting*>* taken) {
  for (const auto& [key, text] : told) {
    const size_t dot = key.find('.');
    if (key.substr(0, dot) != section || key.ends_with(".init") || key == "model.config") continue;
    if (key == "model.tied_head" && is_old_gpt2(told)) continue;
    const Setting* setting = find_setting(section, std::string_view(key).substr(dot + 1));
    auto value = parse_toml_value(text);
    if (setting == nullptr || !value) return fmt::format("{} = {} is not supported", key, text);
    if (const auto problem = accept(*setting, *value); !problem.empty())
      return fmt::format("{} {}", key, problem);
    setting->set(run, *value);
    if (taken != nullptr) taken->push_back(setting);
  }
  return "";
}

std::string missing_size(const KeyValues& told) {
  const auto* const missing = std::ranges::find_if(
      kSizes, [&](const char* key) { return !find_value(told, key).has_value(); });
  return missing == kSizes.end() ? "" : *missing;
}

ModelConfig model_of(const KeyValues& told) {
  if (const std::string missing = missing_size(told); !missing.empty())
    fail(ErrorKind::kConfig,
         "{}: the source does not record {}; name the model's directory with --config, or convert "
         "from gxp's format or from a directory with a config.json whose model_type is {}",
         kAct, missing, families_in_words());
  RunConfig run;
  std::string problem = take_settings("model", told, run);
  if (problem.empty()) problem = first_model_problem(run.model);
  if (!problem.empty()) fail(ErrorKind::kConfig, "{}: {}", kAct, problem);
  return run.model;
}

std::string make_model_config(const ModelConfig& model, const std::string& original,
                              StorageDType dtype) {
  Json config = original.empty() ? Json::object() : parse_config(original, kConfigText);
  config = write_model(model, std::move(config));
  set_dtype(config, dtype);
  return write_python_json(config) + "\n";
}

std::string refresh_model_config(const std::string& original, std::optional<StorageDType> dtype) {
  Json config = parse_config(original, kConfigText);
  if (dtype) set_dtype(config, *dtype);
  add_both_spellings(config);
  return write_python_json(config) + "\n";
}

}  // namespace gxp
