#include "lib/ckpt/huggingface/config_obstacle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "lib/base/text/ascii.h"
#include "lib/ckpt/huggingface/config_spelling.h"

namespace gxp {
namespace {

using Size = HuggingFaceFamily::Size;
using Fact = HuggingFaceFamily::Fact;
using RelatedType = HuggingFaceFamily::RelatedType;

Json value_of(const Json& config, std::string_view key) {
  return config.is_object() ? config.value(std::string(key), Json()) : Json();
}

// "gelu" rather than "\"gelu\"".
std::string to_words(const Json& value) {
  return value.is_string() ? value.get<std::string>() : write_json(value);
}

// What changes the function of some model, and of which gxp computes only the value at which it
// changes nothing: `neutral`, or null, or no such key.
struct NeutralSetting {
  const char* key;
  std::variant<std::monostate, bool, double> neutral = {};  // none: any value changes it
};

constexpr std::array kNeutral = {
    // Caps and factors: Gemma, Granite, Cohere, MiniCPM.
    NeutralSetting{"attn_logit_softcapping"}, NeutralSetting{"final_logit_softcapping"},
    NeutralSetting{"query_pre_attn_scalar"}, NeutralSetting{"attention_multiplier"},
    NeutralSetting{"embedding_multiplier", 1.0}, NeutralSetting{"residual_multiplier", 1.0},
    NeutralSetting{"logits_scaling", 1.0}, NeutralSetting{"logit_scale", 1.0},
    NeutralSetting{"scale_emb", 1.0}, NeutralSetting{"scale_depth"},
    NeutralSetting{"dim_model_base"}, NeutralSetting{"clip_qkv"},
    // Norms of queries and keys: Qwen 3, Phi, OLMo 2, StableLM.
    NeutralSetting{"qk_norm", false}, NeutralSetting{"use_qk_norm", false},
    NeutralSetting{"qk_layernorm", false},
    // Blocks of another form: GPT-NeoX, Falcon, mixtures of experts.
    NeutralSetting{"use_parallel_residual", false}, NeutralSetting{"parallel_attn", false},
    NeutralSetting{"num_experts", 0.0}, NeutralSetting{"num_local_experts", 0.0},
    NeutralSetting{"n_routed_experts", 0.0}, NeutralSetting{"moe_num_experts", 0.0},
    // Positions and masks: SmolLM 3, Falcon, MPT, BERT.
    NeutralSetting{"alibi", false}, NeutralSetting{"use_alibi", false},
    NeutralSetting{"rope_interleave", false}, NeutralSetting{"rope_interleaved", false},
    NeutralSetting{"use_bidirectional_attention", false}, NeutralSetting{"is_causal", true},
    NeutralSetting{"add_cross_attention", false}, NeutralSetting{"is_encoder_decoder", false},
    // Stored numbers that are no weights before they are scaled.
    NeutralSetting{"quantization_config"}, NeutralSetting{"compression_config"}};

bool is_silent_or(const Json& config, std::string_view key, const Json& wanted) {
  const Json value = value_of(config, key);
  return value.is_null() || value == wanted;
}

std::string neutral_obstacle(const Json& config) {
  for (const NeutralSetting& row : kNeutral) {
    const Json wanted = std::visit(
        [](const auto& value) -> Json {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
            return nullptr;
          else
            return value;
        },
        row.neutral);
    if (!is_silent_or(config, row.key, wanted))
      return fmt::format("{} is {}", row.key, to_words(value_of(config, row.key)));
  }
  return "";
}

std::string fact_obstacle(const Json& config, const Fact& fact) {
  if (fact.use == Fact::Use::kWritten) return "";
  const Json wanted = std::visit([](const auto& value) { return Json(value); }, fact.value);
  const Json value = value_of(config, fact.key);
  const auto means_it = [&](std::string_view word) { return value == word; };
  if (value.is_null() || value == wanted || std::ranges::any_of(fact.also, means_it)) return "";
  return fmt::format("{} is {}, not {}", fact.key, to_words(value), to_words(wanted));
}

// Layers without rotary positions (SmolLM 3).
std::string unturned_obstacle(const Json& config) {
  const Json layers = value_of(config, "no_rope_layers");
  const bool all_turn = !layers.is_array() ||
                        std::ranges::all_of(layers, [](const Json& turns) { return turns == 1; });
  return (layers.is_null() || layers.is_array()) && all_turn ? ""
                                                             : "no_rope_layers leaves layers out";
}

std::string rope_obstacle(const Json& config) {
  const Json scaling = value_of(config, "rope_scaling");
  if (!scaling.is_null() && !scaling.is_object()) return "rope_scaling is no object";
  // Readers differ on the meaning of such settings.
  if (!scaling.empty() && value_of(scaling, "rope_type").is_null() &&
      value_of(scaling, "type").is_null())
    return "rope_scaling has no rope_type";
  for (const Json& other : {value_of(config, "rope_parameters"), config})
    if (!is_silent_or(other, "rope_theta", value_of(scaling, "rope_theta")) &&
        !value_of(scaling, "rope_theta").is_null())
      return fmt::format("rope_theta is {} inside rope_scaling and {} outside of it",
                         to_words(scaling["rope_theta"]), to_words(other["rope_theta"]));
  const Json rope = rope_settings(config);
  for (const auto& [key, value] : rope.items())
    if (value.is_object()) return "rope_parameters differ between layers";
  if (rope["rope_type"] != "default")
    return fmt::format("rope_type is {}, not default", to_words(rope["rope_type"]));
  if (!value_of(rope, "mrope_section").is_null()) return "mrope_section is set";
  if (!is_silent_or(rope, "partial_rotary_factor", 1.0))
    return fmt::format("partial_rotary_factor is {}, not 1",
                       to_words(rope["partial_rotary_factor"]));
  const Json theta = value_of(rope, "rope_theta");
  if (!theta.is_null() && (!theta.is_number() || !(theta.get<double>() > 0)))
    return fmt::format("rope_theta is {}; it must be positive", to_words(theta));
  return unturned_obstacle(config);
}

// A window: layers in which a position does not see all positions before it.
std::string window_obstacle(const Json& config, const RelatedType* kin) {
  const Json window = value_of(config, "sliding_window");
  if (kin != nullptr) {
    if (!config.contains("sliding_window"))
      return fmt::format("sliding_window is absent, which means {}", kin->window_if_absent);
    return window.is_null() ? "" : fmt::format("sliding_window is {}", to_words(window));
  }
  const Json layers = value_of(config, "layer_types");
  if (!layers.is_null() && !layers.is_array()) return "layer_types is no list";
  for (const Json& layer : layers)
    if (layer != "full_attention") return fmt::format("layer_types has {}", to_words(layer));
  const bool is_off = value_of(config, "use_sliding_window") == false || layers.is_array();
  return window.is_null() || is_off ? "" : fmt::format("sliding_window is {}", to_words(window));
}

std::string size_obstacle(const Json& config, const Family& family) {
  const HuggingFaceFamily& theirs = family.huggingface;
  ModelConfig model;
  for (const Size& size : theirs.sizes) {
    const Json value = value_of(config, size.theirs);
    if (size.optional && value.is_null()) continue;
    if (!value.is_number_unsigned() || value > INT32_MAX || value < 1)
      return fmt::format("{} is {}, not a positive number", size.theirs,
                         value.is_null() ? "absent" : to_words(value));
    model.*size.member = value.get<int>();
  }
  if (theirs.mlp_width.empty()) return "";
  const int64_t width = family.mlp_width(model);
  return is_silent_or(config, theirs.mlp_width, width)
             ? ""
             : fmt::format("{} is {}, not {}", theirs.mlp_width,
                           to_words(value_of(config, theirs.mlp_width)), width);
}

// Whether `architectures` names the model's class, or nothing. Where the head is always the token
// table, classes without one have the same weights.
bool has_class(const Json& config, const Family& family, std::string_view model_type) {
  const Json classes = value_of(config, "architectures");
  if (!classes.is_array() || classes.empty()) return classes.is_null() || classes.is_array();
  const std::string wanted = lower_case(family.has("tied_head") ? class_of(family, model_type)
                                                                : std::string_view(family.name));
  return std::ranges::any_of(classes, [&](const Json& name) {
    if (!name.is_string()) return false;
    const std::string found = lower_case(name.get_ref<const std::string&>());
    return family.has("tied_head") ? found == wanted : found.starts_with(wanted);
  });
}

const RelatedType* find_kin(const Family& family, std::string_view model_type) {
  const auto& kin = family.huggingface.kin;
  const auto found = std::ranges::find(kin, model_type, &RelatedType::model_type);
  return found == kin.end() ? nullptr : &*found;
}

// All types of model that gxp computes.
std::string types_in_words() {
  std::string words;
  for (const Family& family : families()) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", family.name);
    for (const RelatedType& kin : family.huggingface.kin)
      words += fmt::format(", {}", kin.model_type);
  }
  return words;
}

// A setting whose value has the wrong type.
std::string type_obstacle(const Json& config, const Family& family) {
  const HuggingFaceFamily& theirs = family.huggingface;
  const Json eps = value_of(config, theirs.norm_eps);
  if (!eps.is_null() && (!eps.is_number() || !(eps.get<double>() > 0)))
    return fmt::format("{} is {}, not a positive number", theirs.norm_eps, to_words(eps));
  const Json tied = value_of(config, "tie_word_embeddings");
  return tied.is_null() || tied.is_boolean()
             ? ""
             : fmt::format("tie_word_embeddings is {}, neither true nor false", to_words(tied));
}

}  // namespace

const Family* family_of(const Json& config) {
  const Json type = value_of(config, "model_type");
  if (!type.is_string()) return nullptr;
  const auto& name = type.get_ref<const std::string&>();
  for (const Family& family : families())
    if (family.name == name || find_kin(family, name) != nullptr) return &family;
  return nullptr;
}

std::string_view class_of(const Family& family, std::string_view model_type) {
  const RelatedType* kin = find_kin(family, model_type);
  return kin == nullptr ? family.huggingface.architecture : kin->architecture;
}

std::string config_obstacle(const Json& config) {
  const Json type = value_of(config, "model_type");
  const Family* family = family_of(config);
  if (family == nullptr)
    return fmt::format("model_type is {}; supported: {}",
                       type.is_null() ? "absent" : to_words(type), types_in_words());
  const auto& name = type.get_ref<const std::string&>();
  const RelatedType* kin = find_kin(*family, name);
  if (!has_class(config, *family, name))
    return fmt::format("architectures is {}, not {}", to_words(config["architectures"]),
                       class_of(*family, name));
  if (auto problem = size_obstacle(config, *family); !problem.empty()) return problem;
  if (kin != nullptr && value_of(config, "num_key_value_heads").is_null())
    return "num_key_value_heads is absent";  // its default differs between these model_types
  if (auto problem = type_obstacle(config, *family); !problem.empty()) return problem;
  for (const Fact& fact : family->huggingface.facts)
    if (auto problem = fact_obstacle(config, fact); !problem.empty()) return problem;
  if (auto problem = neutral_obstacle(config); !problem.empty()) return problem;
  if (auto problem = window_obstacle(config, kin); !problem.empty()) return problem;
  return family->has("rope_theta") ? rope_obstacle(config) : "";
}

}  // namespace gxp
