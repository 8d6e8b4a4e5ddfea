#include "lib/ckpt/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <variant>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/config_spelling.h"
#include "lib/ckpt/json.h"
#include "lib/config/toml_reader.h"

namespace gxp {
namespace {

using Size = HuggingFaceFamily::Size;
using Fact = HuggingFaceFamily::Fact;

bool is_silent_or(const Json& config, std::string_view key, const Json& wanted) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() || *found == wanted;
}

Json to_json(const Fact& fact) {
  return std::visit([](const auto& value) { return Json(value); }, fact.value);
}

// "hidden_act is not silu", "attention_bias is on"; "" if the fact holds.
std::string contradiction(const Json& config, const Fact& fact) {
  if (fact.use == Fact::Use::kWritten || is_silent_or(config, fact.key, to_json(fact))) return "";
  const auto* const wanted = std::get_if<bool>(&fact.value);
  if (wanted != nullptr) return fmt::format("{} is {}", fact.key, *wanted ? "off" : "on");
  const auto* const word = std::get_if<std::string_view>(&fact.value);
  return fmt::format("{} is not {}", fact.key, word != nullptr ? *word : to_json(fact).dump());
}

std::string rope_obstacle(const Json& config) {
  const Json scaling = config.value("rope_scaling", Json());
  if (!is_silent_or(rope_of(config), "rope_type", "default") || !scaling.is_null())
    return "rotary positions are scaled";
  if (!is_silent_or(rope_of(config), "partial_rotary_factor", 1.0))
    return "rotary positions turn a part of the channels";
  return rope_of(config).value("rope_theta", Json(1.0)).is_number() ? ""
                                                                    : "rope_theta is no number";
}

// The settings that are no integers and that not all families have, both ways.
struct OtherKey {
  std::string_view key;  // in [model]
  // What keeps gxp from computing the model; "" if nothing does.
  std::string (*obstacle)(const Json&);
  std::string (*read)(const Json&);  // as TOML
  void (*write)(const ModelConfig&, Json&);
};

constexpr OtherKey kOtherKeys[] = {
    {"rope_theta", rope_obstacle,
     [](const Json& config) { return to_toml(rope_of(config).value("rope_theta", 10000.0)); },
     [](const ModelConfig& model, Json& config) {
       config["rope_theta"] = model.rope_theta;  // transformers 4; 5 has the object
       config["rope_parameters"] = {{"rope_theta", model.rope_theta}, {"rope_type", "default"}};
     }},
    {"tied_head",
     [](const Json& config) -> std::string {
       const Json tied = config.value("tie_word_embeddings", Json(false));
       return tied.is_boolean() ? "" : "tie_word_embeddings is neither true nor false";
     },
     [](const Json& config) { return to_toml(config.value("tie_word_embeddings", false)); },
     [](const ModelConfig& model, Json& config) {
       config["tie_word_embeddings"] = model.tied_head;
     }}};

const Family* known_family(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

const Family* family_of(const Json& config) {
  const Json type = config.value("model_type", Json());
  return type.is_string() ? known_family(type.get_ref<const std::string&>()) : nullptr;
}

std::string size_obstacle(const Json& config, const Family& family) {
  const HuggingFaceFamily& theirs = family.huggingface;
  ModelConfig model;
  for (const Size& size : theirs.sizes) {
    const Json value = config.value(size.theirs, Json());
    if (size.optional && value.is_null()) continue;
    if (!value.is_number_unsigned() || value > INT32_MAX || value < 1)
      return fmt::format("{} is no positive number", size.theirs);
    model.*size.member = value.get<int>();
  }
  if (theirs.mlp_width.empty()) return "";
  const int64_t width = family.mlp_width(model);
  return is_silent_or(config, theirs.mlp_width, width)
             ? ""
             : fmt::format("{} is not {}", theirs.mlp_width, width);
}

std::string obstacle(const Json& config) {
  const Family* family = family_of(config);
  if (family == nullptr) return fmt::format("model_type is not {}", families_in_words());
  if (std::string problem = size_obstacle(config, *family); !problem.empty()) return problem;
  const HuggingFaceFamily& theirs = family->huggingface;
  if (family->has("tied_head") && !is_language_model(config))
    return fmt::format("architectures is not {}", theirs.architecture);
  if (!config.value(theirs.norm_eps, Json(1.0)).is_number())
    return fmt::format("{} is no number", theirs.norm_eps);
  for (const Fact& fact : theirs.facts) {
    if (std::string problem = contradiction(config, fact); !problem.empty()) return problem;
  }
  for (const OtherKey& other : kOtherKeys) {
    if (!family->has(other.key)) continue;
    if (std::string problem = other.obstacle(config); !problem.empty()) return problem;
  }
  return "";
}

template <class Number>
Number parse_number(const std::string& key, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::kConfig, "write a Hugging Face directory: {} is '{}', no number", key, text);
  return number;
}

template <class Number>
Number parse_setting(const KeyValues& settings, const char* key) {
  const auto text = find_value(settings, key);
  if (!text)
    fail(
        ErrorKind::kConfig,
        "write a Hugging Face directory: the source does not tell {}; convert from gxp's format or "
        "from a directory with a config.json whose model_type is {}",
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
  Json config = parse_json(text, path);
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

// What a config.json says if it has not said otherwise.
Json facts_json(const Family& family) {
  const HuggingFaceFamily& theirs = family.huggingface;
  Json config = {{"architectures", Json::array({theirs.architecture})}};
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
  if (const std::string reason = obstacle(config); !reason.empty()) {
    log_warn("{}: {}: tensors and config.json are kept, but gxp cannot train the model", path,
             reason);
    return {};
  }
  const Family& family = *family_of(config);
  const HuggingFaceFamily& theirs = family.huggingface;
  KeyValues settings = {{"model.family", to_toml(std::string(family.name))}};
  for (const Size& size : theirs.sizes) {
    const Json value = config.value(size.theirs, Json());
    if (!value.is_null()) settings.emplace_back(size.ours, to_toml(value.get<int64_t>()));
  }
  settings.emplace_back("model.norm_eps",
                        to_toml(config.value(theirs.norm_eps, theirs.norm_eps_if_absent)));
  for (const OtherKey& other : kOtherKeys) {
    if (family.has(other.key))
      settings.emplace_back(fmt::format("model.{}", other.key), other.read(config));
  }
  return settings;
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
    model.*size.member = parse_setting<int>(settings, size.ours);
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
  config.update(settings_json(model, family));
  Json others = facts_json(family);
  others.update(config);
  set_dtype(others, dtype);
  return others.dump(2) + "\n";
}

std::string refresh_model_config(const std::string& original, std::optional<StorageDType> dtype) {
  Json config = parse_config(original, kConfigText);
  if (dtype) set_dtype(config, *dtype);
  add_both_spellings(config);
  return config.dump(2) + "\n";
}

}  // namespace gxp
