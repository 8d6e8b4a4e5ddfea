#include "lib/ckpt/huggingface/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <variant>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/huggingface/config_obstacle.h"
#include "lib/ckpt/huggingface/config_spelling.h"
#include "lib/ckpt/json.h"
#include "lib/config/toml_reader.h"

namespace gxp {
namespace {

using Size = HuggingFaceFamily::Size;
using Fact = HuggingFaceFamily::Fact;

Json to_json(const Fact& fact) {
  return std::visit([](const auto& value) { return Json(value); }, fact.value);
}

// The value of a key that may be null, which means as much as no key.
template <class T>
T value_or(const Json& config, const char* key, T absent) {
  const Json value = config.value(key, Json());
  return value.is_null() ? absent : value.get<T>();
}

// The settings that are no integers and that not all families have, both ways.
struct OtherKey {
  std::string_view key;              // in [model]
  std::string (*read)(const Json&);  // as TOML
  void (*write)(const ModelConfig&, Json&);
};

constexpr OtherKey kOtherKeys[] = {
    {"rope_theta",
     [](const Json& config) {
       return to_toml(value_or(rope_settings(config), "rope_theta", 10000.0));
     },
     [](const ModelConfig& model, Json& config) {
       config["rope_theta"] = model.rope_theta;  // transformers 4; 5 has the object
       config["rope_parameters"] = {{"rope_theta", model.rope_theta}, {"rope_type", "default"}};
     }},
    {"tied_head",
     [](const Json& config) { return to_toml(value_or(config, "tie_word_embeddings", false)); },
     [](const ModelConfig& model, Json& config) {
       config["tie_word_embeddings"] = model.tied_head;
     }}};

const Family* known_family(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

template <class Number>
Number parse_number(const std::string& key, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::kConfig, "write a Hugging Face directory: {} is '{}', not a number", key, text);
  return number;
}

template <class Number>
Number parse_setting(const KeyValues& settings, const char* key, bool optional = false) {
  const auto text = find_value(settings, key);
  if (!text && optional) return 0;
  if (!text)
    fail(ErrorKind::kConfig,
         "write a Hugging Face directory: the source does not record {}; convert from gxp's format "
         "or from a directory with a config.json whose model_type is {}",
         key, families_in_words());
  return parse_number<Number>(key, *text);
}

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

// What [model] decides.
Json settings_json(const ModelConfig& model, const Family& family) {
  const HuggingFaceFamily& theirs = family.huggingface;
  ModelConfig full = model;  // nothing left to a default
  full.kv_heads = model.kv_head_count();
  full.head_size = model.channels_per_head();
  full.mlp_hidden = int(model.mlp_width());
  Json config = {{"model_type", family.name}, {theirs.norm_eps, model.norm_eps}};
  for (const Size& size : theirs.sizes) config[size.theirs] = full.*size.member;
  for (const OtherKey& other : kOtherKeys) {
    if (family.has(other.key)) other.write(full, config);
  }
  return config;
}

// What a config.json of this model_type says if it has not said otherwise.
Json facts_json(const Family& family, const std::string& model_type) {
  const HuggingFaceFamily& theirs = family.huggingface;
  Json config = {{"architectures", Json::array({class_of(family, model_type)})}};
  // The defaults are other vocabularies'.
  config["bos_token_id"] = config["eos_token_id"] = nullptr;
  for (const Fact& fact : theirs.facts) {
    if (fact.use != Fact::Use::kRead) config[fact.key] = to_json(fact);
  }
  return config;
}

void set_dtype(Json& config, StorageDType dtype) {
  config["dtype"] = config["torch_dtype"] = torch_dtype(dtype);  // transformers 5 and 4
}

}  // namespace

KeyValues read_model_config(std::string_view text, const std::string& path) {
  const Json config = parse_config(text, path);
  if (!config_obstacle(config).empty()) return {};
  const Family& family = *family_of(config);
  const HuggingFaceFamily& theirs = family.huggingface;
  KeyValues settings = {{"model.family", to_toml(std::string(family.name))}};
  for (const Size& size : theirs.sizes) {
    const Json value = config.value(size.theirs, Json());
    if (!value.is_null()) settings.emplace_back(size.ours, to_toml(value.get<int64_t>()));
  }
  settings.emplace_back("model.norm_eps",
                        to_toml(value_or(config, theirs.norm_eps, theirs.norm_eps_if_absent)));
  for (const OtherKey& other : kOtherKeys) {
    if (family.has(other.key))
      settings.emplace_back(fmt::format("model.{}", other.key), other.read(config));
  }
  return settings;
}

std::string describe_obstacle(std::string_view text, const std::string& path) {
  return config_obstacle(parse_config(text, path));
}

std::string describe_dropout(std::string_view text, const std::string& path) {
  const Json config = parse_config(text, path);
  const Family* family = family_of(config);
  std::vector<std::string> rates;
  for (const Fact& fact : family == nullptr ? std::vector<Fact>() : family->huggingface.facts) {
    const Json value = config.value(fact.key, Json());
    if (fact.use == Fact::Use::kWritten && !value.is_null() && value != to_json(fact))
      rates.push_back(fmt::format("{} {}", fact.key, write_json(value)));
  }
  return joined(rates, ", ");
}

ModelConfig model_of(const KeyValues& settings) {
  ModelConfig model;
  const std::string name =
      find_value(settings, "model.family").value_or(to_toml(ModelConfig().family));
  const Family* family =
      name.size() < 2 ? nullptr : known_family(std::string_view(name).substr(1, name.size() - 2));
  if (family == nullptr)
    fail(ErrorKind::kConfig, "write a Hugging Face directory: model.family is {}, not {}", name,
         families_in_words());
  model.family = family->name;
  for (const Size& size : family->huggingface.sizes) {
    model.*size.member = parse_setting<int>(settings, size.ours, size.optional);
    const int least = size.ours == std::string_view("model.mlp_hidden") || size.optional ? 0 : 1;
    if (model.*size.member < least)
      fail(ErrorKind::kConfig, "write a Hugging Face directory: {} is {}, at least {} is needed",
           size.ours, model.*size.member, least);
  }
  model.norm_eps = parse_setting<double>(settings, "model.norm_eps");
  if (family->has("rope_theta"))
    model.rope_theta = parse_setting<double>(settings, "model.rope_theta");
  if (family->has("tied_head")) model.tied_head = find_value(settings, "model.tied_head") == "true";
  return model;
}

std::string make_model_config(const ModelConfig& model, const std::string& original,
                              StorageDType dtype) {
  const Family& family = find_family(model.family);
  Json config = Json::object();
  if (!original.empty()) config = parse_config(original, kConfigText);
  if (family_of(config) != &family) config = Json::object();  // of another model
  const std::string model_type = config.value("model_type", std::string(family.name));
  config.update(settings_json(model, family));
  config["model_type"] = model_type;  // a kin keeps its own
  // No scaling: rope_parameters, which is written, says that too, and any object would replace it.
  if (config.value("rope_scaling", Json()).is_object()) config.erase("rope_scaling");
  Json others = facts_json(family, model_type);
  others.update(config);
  set_dtype(others, dtype);
  return write_python_json(others) + "\n";
}

std::string refresh_model_config(const std::string& original, std::optional<StorageDType> dtype) {
  Json config = parse_config(original, kConfigText);
  if (dtype) set_dtype(config, *dtype);
  add_both_spellings(config);
  return write_python_json(config) + "\n";
}

}  // namespace gxp
