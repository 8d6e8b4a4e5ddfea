#include "lib/arch/config_json/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/arch/config_json/config_keys.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

const Family* family_of(const Json& config) {
  const Json type = value_of(config, "model_type");
  const auto found =
      std::ranges::find_if(families(), [&](const Family& family) { return type == family.name; });
  return found == families().end() ? nullptr : &*found;
}

// Whether `architectures` names the family's class, or nothing. Where the head is the token table,
// GPT-2's other classes have the same weights.
std::string class_problem(const ModelInJson& in) {
  const Json classes = value_of(in.told, "architectures");
  if (classes.is_null() || (classes.is_array() && classes.empty())) return "";
  const std::string wanted = lower_case(std::string(in.family.architecture));
  const bool by_stem = in.family.name == "gpt2" && in.model.ties_head();
  for (const Json& name : classes.is_array() ? classes : Json::array({classes})) {
    const std::string found = name.is_string() ? lower_case(name.get<std::string>()) : "";
    if (found == wanted || (by_stem && found.starts_with("gpt2"))) return "";
  }
  return fmt::format("architectures is {}, not {}", to_words(classes), in.family.architecture);
}

bool is_read(const Family& family, std::string_view key) {
  return class_defaults(family).contains(std::string(key)) || key == "layer_types";
}

// GPT-2's class takes the names of other classes too.
struct OtherName {
  std::string_view own, other;
};
constexpr std::array kGpt2Names = {
    OtherName{"n_positions", "max_position_embeddings"}, OtherName{"n_embd", "hidden_size"},
    OtherName{"n_layer", "num_hidden_layers"}, OtherName{"n_head", "num_attention_heads"}};

// The key that stands for a computed one in this file.
std::string name_in(const ModelInJson& in, const std::string& key) {
  if (in.family.name != "gpt2" || in.told.contains(key)) return key;
  const auto* const row = std::ranges::find(kGpt2Names, key, &OtherName::own);
  return row == kGpt2Names.end() || !in.told.contains(std::string(row->other))
             ? key
             : std::string(row->other);
}

// Whether GPT-2's class reads the key in place of a computed one, which says nothing else.
bool is_other_name(const ModelInJson& in, const std::string& key) {
  return in.family.name == "gpt2" && std::ranges::any_of(kGpt2Names, [&](const OtherName& row) {
           const std::string own(row.own);
           return row.other == key && (!in.told.contains(own) || in.told[own] == in.told[key]);
         });
}

// A key that no setting says, with a value that may change the computation.
std::string other_key_problem(const ModelInJson& in) {
  for (const auto& [key, value] : in.told.items()) {
    const bool is_off = key == "sliding_window" && value_of(in.told, "use_sliding_window") == false;
    if (value.is_null() || is_off || is_other_name(in, key) || is_read(in.family, key) ||
        has_no_effect(in.family, key))
      continue;
    const Json* only = only_value(in.family, key);
    if (only == nullptr)
      return fmt::format("{} is {}, a key that gxp does not know for {}", key, to_words(value),
                         in.family.name);
    if (value != *only)
      return fmt::format(
          "{} is {}; gxp computes {} only{}", key, to_words(value), in.family.name,
          only->is_null() ? " without it" : fmt::format(" with {}", to_words(*only)));
  }
  return "";
}

std::string heads_problem(const ModelInJson& in) {
  const ModelConfig& model = in.model;
  const bool any_hidden = model.head_size > 0 && in.family.name != "llama" &&
                          in.family.name != "gemma2" && in.family.name != "gemma3_text";
  if (!any_hidden && model.hidden % model.heads != 0)
    return fmt::format("{} heads do not divide {} channels", model.heads, model.hidden);
  if (model.heads % model.kv_head_count() != 0)
    return fmt::format(
        "num_key_value_heads is {}{}, which does not divide {} heads", model.kv_heads,
        in.told.contains("num_key_value_heads") ? "" : ", the class's default", model.heads);
  return "";
}

std::string read_keys(ModelInJson& in) {
  in.config = class_defaults(in.family);
  for (auto& [key, value] : in.config.items())
    if (const std::string name = name_in(in, key); in.told.contains(name)) value = in.told[name];
  for (const ConfigKey& key : config_keys()) {
    const auto found = in.config.find(std::string(key.name));
    if (found == in.config.end()) continue;
    if (const std::string problem = key.read(*found, in); !problem.empty())
      return fmt::format("{} is {}{}", key.name, to_words(*found), problem);
  }
  for (const auto problem_of : {class_problem, heads_problem, other_key_problem})
    if (auto problem = problem_of(in); !problem.empty()) return problem;
  if (auto problem = read_layers(in); !problem.empty()) return problem;
  return read_rope(in);
}

}  // namespace

ModelReading read_model(const Json& config) {
  const Family* family = family_of(config);
  if (family == nullptr) {
    const Json type = value_of(config, "model_type");
    return {.obstacle = fmt::format("model_type is {}; supported: {}",
                                    type.is_null() ? "absent" : to_words(type),
                                    joined(family_names(), ", "))};
  }
  ModelInJson in{.family = *family, .told = config, .config = {}, .model = {}};
  in.model.family = family->name;
  std::string obstacle = read_keys(in);
  return {.model = std::move(in.model), .obstacle = std::move(obstacle)};
}

Json write_model(const ModelConfig& model, Json original) {
  const Family& family = find_family(model.family);
  if (family_of(original) != &family || !read_model(original).obstacle.empty())
    original = Json::object();
  Json config = original;
  const auto set_default = [&](std::string_view key, const Json& value) {
    if (!config.contains(std::string(key))) config[std::string(key)] = value;
  };
  config["model_type"] = family.name;
  set_default("architectures", Json::array({family.architecture}));
  for (const ConfigKey& key : config_keys())
    if (class_defaults(family).contains(std::string(key.name)))
      config[std::string(key.name)] = key.write(model);
  write_layers(model, config);
  write_rope(model, config);
  // The class's defaults are other vocabularies', and rates that gxp does not train with.
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    set_default(key, nullptr);
  for (const std::string_view key : dropout_keys(family)) set_default(key, 0.0);
  // What says the same already stays as it was written.
  if (original.empty() || read_model(original).model.resolved() != model.resolved()) return config;
  for (const auto& [key, value] : original.items())
    if (!value.is_null()) config[key] = value;
  return config;
}

std::string describe_dropout(const Json& config) {
  const Family* family = family_of(config);
  std::vector<std::string> rates;
  for (const auto key :
       family == nullptr ? std::vector<std::string_view>() : dropout_keys(*family)) {
    const Json value = value_of(config, key);
    if (!value.is_null() && value != 0.0)
      rates.push_back(fmt::format("{} {}", key, to_words(value)));
  }
  return joined(rates, ", ");
}

KeyUse use_of_key(std::string_view family, std::string_view key) {
  const Family& row = find_family(family);
  const bool is_other_name =
      family == "gpt2" && std::ranges::find(kGpt2Names, key, &OtherName::other) != kGpt2Names.end();
  if (is_read(row, key) || is_other_name) return KeyUse::kComputed;
  if (has_no_effect(row, key)) return KeyUse::kWithoutEffect;
  return only_value(row, key) != nullptr ? KeyUse::kOneValue : KeyUse::kUnknown;
}

Json class_default(std::string_view family, std::string_view key) {
  return value_of(class_defaults(find_family(family)), key);
}

}  // namespace gxp
