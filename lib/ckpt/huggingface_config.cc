#include "lib/ckpt/huggingface_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/json.h"
#include "lib/config/value.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxConfigBytes = 16u << 20;
using OrderedJson = nlohmann::ordered_json;

struct IntegerKey {
  const char* theirs;
  const char* ours;
  int ModelConfig::*member;
  bool optional = false;  // absent or null: 0, which stands for a default
};

// How a family's config.json says what [model] says; model_type is the family's name.
struct ConfigFamily {
  std::string_view name;
  const char* architecture;
  std::span<const IntegerKey> integers;
  const char* eps;
  double default_eps;
  // What keeps gxp from computing the model, beyond the keys above; "" if nothing does.
  std::string (*obstacle)(const Json&);
  // The settings that are no integers, both ways.
  void (*read_others)(const Json&, KeyValues&);
  void (*write_others)(const ModelConfig&, OrderedJson&);
};

bool is(const Json& config, const char* key, const Json& wanted) {
  return !config.contains(key) || config[key].is_null() || config[key] == wanted;
}

constexpr IntegerKey kGpt2Integers[] = {
    {"vocab_size", "model.vocab_size", &ModelConfig::vocab_size},
    {"n_positions", "model.context", &ModelConfig::context},
    {"n_embd", "model.hidden", &ModelConfig::hidden},
    {"n_layer", "model.layers", &ModelConfig::layers},
    {"n_head", "model.heads", &ModelConfig::heads}};

std::string gpt2_obstacle(const Json& config) {
  if (!is(config, "activation_function", "gelu_new")) return "activation_function is not gelu_new";
  if (!is(config, "n_inner", 4 * config["n_embd"].get<uint64_t>()))
    return "n_inner is not 4 * n_embd";
  if (!is(config, "scale_attn_weights", true)) return "scale_attn_weights is off";
  if (!is(config, "scale_attn_by_inverse_layer_idx", false)) return "attention is scaled by layer";
  if (!is(config, "tie_word_embeddings", true)) return "tie_word_embeddings is off";
  return "";
}

void write_gpt2(const ModelConfig&, OrderedJson& config) {
  config["activation_function"] = "gelu_new";
  config["attn_pdrop"] = config["embd_pdrop"] = config["resid_pdrop"] = 0.0;
  config["tie_word_embeddings"] = true;
}

constexpr IntegerKey kLlamaIntegers[] = {
    {"vocab_size", "model.vocab_size", &ModelConfig::vocab_size},
    {"max_position_embeddings", "model.context", &ModelConfig::context},
    {"hidden_size", "model.hidden", &ModelConfig::hidden},
    {"num_hidden_layers", "model.layers", &ModelConfig::layers},
    {"num_attention_heads", "model.heads", &ModelConfig::heads},
    {"num_key_value_heads", "model.kv_heads", &ModelConfig::kv_heads, true},
    {"head_dim", "model.head_size", &ModelConfig::head_size, true},
    {"intermediate_size", "model.mlp_hidden", &ModelConfig::mlp_hidden}};

// The object that holds RoPE's settings: transformers 5 has one, transformers 4 the top level.
const Json& rope_of(const Json& config) {
  const auto found = config.find("rope_parameters");
  return found != config.end() && found->is_object() ? *found : config;
}

std::string llama_obstacle(const Json& config) {
  if (!is(config, "hidden_act", "silu")) return "hidden_act is not silu";
  if (!is(config, "attention_bias", false)) return "attention_bias is on";
  if (!is(config, "mlp_bias", false)) return "mlp_bias is on";
  const Json scaling = config.value("rope_scaling", Json());
  if (!is(rope_of(config), "rope_type", "default") || !scaling.is_null())
    return "rotary positions are scaled";
  if (!rope_of(config).value("rope_theta", Json(1.0)).is_number()) return "rope_theta is no number";
  const Json tied = config.value("tie_word_embeddings", Json(false));
  return tied.is_boolean() ? "" : "tie_word_embeddings is neither true nor false";
}

void read_llama(const Json& config, KeyValues& settings) {
  settings.emplace_back("model.rope_theta", to_toml(rope_of(config).value("rope_theta", 10000.0)));
  settings.emplace_back("model.tied_head", to_toml(config.value("tie_word_embeddings", false)));
}

void write_llama(const ModelConfig& model, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["attention_bias"] = config["mlp_bias"] = false;
  config["attention_dropout"] = 0.0;
  config["rope_theta"] = model.rope_theta;  // transformers 4; 5 has the object
  config["rope_parameters"] = {{"rope_theta", model.rope_theta}, {"rope_type", "default"}};
  config["tie_word_embeddings"] = model.tied_head;
}

constexpr ConfigFamily kFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", kGpt2Integers, "layer_norm_epsilon", 1e-5, gpt2_obstacle,
     [](const Json&, KeyValues&) {}, write_gpt2},
    {"llama", "LlamaForCausalLM", kLlamaIntegers, "rms_norm_eps", 1e-6, llama_obstacle, read_llama,
     write_llama}};

const ConfigFamily* find_family(std::string_view name) {
  const auto* found = std::ranges::find(kFamilies, name, &ConfigFamily::name);
  return found == std::end(kFamilies) ? nullptr : found;
}

const ConfigFamily* family_of(const Json& config) {
  const Json type = config.value("model_type", Json());
  return type.is_string() ? find_family(type.get_ref<const std::string&>()) : nullptr;
}

std::string obstacle(const Json& config) {
  const ConfigFamily* family = family_of(config);
  if (family == nullptr) return "model_type is neither gpt2 nor llama";
  for (const IntegerKey& key : family->integers) {
    const Json value = config.value(key.theirs, Json());
    if (key.optional && value.is_null()) continue;
    if (!value.is_number_unsigned() || value > INT32_MAX || value < 1)
      return fmt::format("{} is no positive number", key.theirs);
  }
  if (!config.value(family->eps, Json(1.0)).is_number())
    return fmt::format("{} is no number", family->eps);
  return family->obstacle(config);
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
        "from a directory with a config.json of GPT-2 or Llama",
        key);
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

}  // namespace

KeyValues read_model_config(const std::string& path) {
  const Json config = parse_json(read_text(path, kMaxConfigBytes), path);
  to_object(config, "read " + path);
  if (const std::string reason = obstacle(config); !reason.empty()) {
    log_warn("{}: {}: the tensors are read, the model's settings are not", path, reason);
    return {};
  }
  const ConfigFamily& family = *family_of(config);
  KeyValues settings = {{"model.family", to_toml(std::string(family.name))}};
  for (const IntegerKey& key : family.integers) {
    const Json value = config.value(key.theirs, Json());
    if (!value.is_null()) settings.emplace_back(key.ours, to_toml(value.get<int64_t>()));
  }
  settings.emplace_back("model.norm_eps", to_toml(config.value(family.eps, family.default_eps)));
  family.read_others(config, settings);
  return settings;
}

ModelConfig model_of(const KeyValues& settings) {
  ModelConfig model;
  const std::string name = find_value(settings, "model.family").value_or("\"gpt2\"");
  const ConfigFamily* family =
      name.size() < 2 ? nullptr : find_family(std::string_view(name).substr(1, name.size() - 2));
  if (family == nullptr)
    fail(ErrorKind::kConfig,
         "write a Hugging Face directory: model.family is {}, neither gpt2 nor llama", name);
  model.family = family->name;
  for (const IntegerKey& key : family->integers) {
    model.*key.member = parse_setting<int>(settings, key.ours);
    const int least = key.ours == std::string_view("model.mlp_hidden") || key.optional ? 0 : 1;
    if (model.*key.member < least)
      fail(ErrorKind::kConfig, "write a Hugging Face directory: {} is {}, at least {} is needed",
           key.ours, model.*key.member, least);
  }
  model.norm_eps = parse_setting<double>(settings, "model.norm_eps");
  if (model.family != "llama") return model;
  model.rope_theta = parse_setting<double>(settings, "model.rope_theta");
  model.tied_head = find_value(settings, "model.tied_head") == "true";
  return model;
}

std::string make_model_config(const ModelConfig& model, StorageDType dtype) {
  const ConfigFamily* family = find_family(model.family);
  GXP_ASSERT(family != nullptr);
  ModelConfig full = model;  // nothing left to a default
  full.kv_heads = model.kv_head_count();
  full.head_size = model.channels_per_head();
  full.mlp_hidden = int(model.mlp_width());
  OrderedJson config = {{"architectures", {family->architecture}}, {"model_type", family->name}};
  for (const IntegerKey& key : family->integers) config[key.theirs] = full.*key.member;
  config[family->eps] = model.norm_eps;
  family->write_others(full, config);
  config["bos_token_id"] = config["eos_token_id"] =
      nullptr;  // the defaults are other vocabularies'
  config["dtype"] = config["torch_dtype"] = torch_dtype(dtype);  // transformers 5 and 4
  return config.dump(2) + "\n";
}

}  // namespace gxp
