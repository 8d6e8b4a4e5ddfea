#include "lib/arch/config_json/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>

#include "lib/arch/config_json/config_json.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

using In = ModelInJson;

constexpr const char* kNoSize = ", not a positive number";
constexpr const char* kNoFlag = ", neither true nor false";

template <int ModelConfig::*kSize>
std::string read_size(const Json& value, In& in) {
  if (!is_size(value)) return kNoSize;
  in.model.*kSize = value.get<int>();
  return "";
}
template <int ModelConfig::*kSize>
Json write_size(const ModelConfig& model) {
  return model.*kSize;
}
template <int ModelConfig::*kSize>
constexpr ConfigKey size_key(std::string_view name) {
  return {name, read_size<kSize>, write_size<kSize>};
}

template <double ModelConfig::*kNumber>
std::string read_number(const Json& value, In& in) {
  if (!is_positive(value)) return kNoSize;
  in.model.*kNumber = value.get<double>();
  return "";
}
template <double ModelConfig::*kNumber>
Json write_number(const ModelConfig& model) {
  return model.*kNumber;
}
template <double ModelConfig::*kNumber>
constexpr ConfigKey number_key(std::string_view name) {
  return {name, read_number<kNumber>, write_number<kNumber>};
}

// A cap: null for none.
template <double ModelConfig::*kCap>
std::string read_cap(const Json& value, In& in) {
  return value.is_null() ? "" : read_number<kCap>(value, in);
}
template <double ModelConfig::*kCap>
Json write_cap(const ModelConfig& model) {
  return model.*kCap > 0 ? Json(model.*kCap) : Json();
}

template <auto kFlag>
std::string read_flag(const Json& value, In& in) {
  if (!value.is_boolean()) return kNoFlag;
  in.model.*kFlag = value.get<bool>();
  return "";
}
template <bool ModelConfig::*kFlag>
Json write_flag(const ModelConfig& model) {
  return model.*kFlag;
}
template <bool (ModelConfig::*kValue)() const>
Json write_choice(const ModelConfig& model) {
  return (model.*kValue)();
}

bool is_gemma(const Family& family) { return family.name.starts_with("gemma"); }

// Null means as many as heads where the class allows it.
std::string read_kv_heads(const Json& value, In& in) {
  if (value.is_null() && (is_gemma(in.family) || in.family.name == "mistral")) return kNoSize;
  return read_size<&ModelConfig::kv_heads>(value.is_null() ? Json(in.model.heads) : value, in);
}
Json write_kv_heads(const ModelConfig& model) { return model.kv_head_count(); }

std::string read_head_dim(const Json& value, In& in) {
  if (!value.is_null()) return read_size<&ModelConfig::head_size>(value, in);
  if (!class_default(in.family.name, "head_dim").is_null()) return kNoSize;
  in.model.head_size = in.model.hidden / in.model.heads;
  return in.model.head_size > 0 ? "" : ", and the model has more heads than channels";
}
Json write_head_dim(const ModelConfig& model) { return model.channels_per_head(); }

std::string read_inner(const Json& value, In& in) {
  if (!value.is_null()) return read_size<&ModelConfig::mlp_hidden>(value, in);
  if (in.model.hidden > INT_MAX / 4) return ", and n_embd is too large";
  in.model.mlp_hidden = 4 * in.model.hidden;
  return "";
}
Json write_inner(const ModelConfig& model) {
  return model.mlp_width() == int64_t{4} * model.hidden ? Json() : Json(model.mlp_width());
}
Json write_mlp(const ModelConfig& model) { return model.mlp_width(); }

struct ActivationWord {
  std::string_view word;
  Activation activation;
};
constexpr std::array kActivations = {ActivationWord{"silu", Activation::kSilu},
                                     ActivationWord{"swish", Activation::kSilu},
                                     ActivationWord{"gelu", Activation::kGelu},
                                     ActivationWord{"gelu_pytorch_tanh", Activation::kGeluTanh},
                                     ActivationWord{"gelu_new", Activation::kGeluTanh},
                                     ActivationWord{"gelu_fast", Activation::kGeluTanh},
                                     ActivationWord{"relu", Activation::kRelu}};

std::string read_activation(const Json& value, In& in) {
  const auto found = std::ranges::find_if(
      kActivations, [&](const ActivationWord& row) { return value == row.word; });
  if (found == kActivations.end()) return "; gxp computes silu, gelu, gelu_pytorch_tanh and relu";
  in.model.activation = found->activation;
  // The first official files say "gelu" for what the class computes as GELU's tanh form.
  if (in.family.name == "gemma" && value == "gelu") in.model.activation = Activation::kGeluTanh;
  return "";
}
Json write_activation(const ModelConfig& model) {
  const Activation wanted = model.activation_used();
  if (model.family == "gemma" && wanted == Activation::kGelu)
    fail_to_write(model, "activation", "gelu");
  // GPT-2's word for it is the older one.
  if (wanted == Activation::kGeluTanh && !is_gemma(find_family(model.family))) return "gelu_new";
  return std::ranges::find(kActivations, wanted, &ActivationWord::activation)->word;
}

std::string read_pad_token(const Json& value, In& in) {
  if (value.is_null()) return "";
  const int rows = in.model.vocab_size;
  if (!value.is_number_integer() || value >= rows || value < -rows)
    return fmt::format(", no token of {}", rows);
  const int token = value.get<int>();
  in.model.pad_token = token < 0 ? rows + token : token;  // counted from the end, as torch does
  return "";
}
Json write_pad_token(const ModelConfig& model) {
  return model.pad_token < 0 ? Json() : Json(model.pad_token);
}

std::string read_scale_by_head(const Json& value, In& in) {
  if (!value.is_boolean()) return kNoFlag;
  if (value == false) in.model.attention_scale = 1;
  return "";
}
double usual_scale(const ModelConfig& model) {
  return 1 / std::sqrt(double(model.channels_per_head()));
}
Json write_scale_by_head(const ModelConfig& model) {
  const double scale = model.attention_scale;
  if (scale != 0 && scale != 1 && scale != usual_scale(model))
    fail_to_write(model, "attention_scale", fmt::format("{}", scale));
  return scale != 1;
}

Json write_multiplier(const ModelConfig& model) {
  return model.attention_scale > 0 ? model.attention_scale : usual_scale(model);
}

double scale_of(double query_scalar) { return 1 / std::sqrt(query_scalar); }
std::string read_query_scalar(const Json& value, In& in) {
  if (!is_positive(value)) return kNoSize;
  in.model.attention_scale = scale_of(value.get<double>());
  return "";
}
// The number, if possible a whole one, whose scale has the same bits.
Json write_query_scalar(const ModelConfig& model) {
  const double scale = model.attention_scale;
  if (scale == 0) return model.channels_per_head();
  const double about = 1 / (scale * scale);
  if (scale_of(std::round(about)) == scale && about < INT_MAX) return int(std::round(about));
  double number = about * (1 - 0x1p-50);
  for (int step = 0; step < 16 && scale_of(number) != scale; ++step)
    number = std::nextafter(number, about * 2);
  return number;
}

constexpr auto kKeys = std::to_array<ConfigKey>({
    size_key<&ModelConfig::vocab_size>("vocab_size"),
    size_key<&ModelConfig::context>("n_positions"),
    size_key<&ModelConfig::context>("max_position_embeddings"),
    size_key<&ModelConfig::hidden>("n_embd"),
    size_key<&ModelConfig::hidden>("hidden_size"),
    size_key<&ModelConfig::layers>("n_layer"),
    size_key<&ModelConfig::layers>("num_hidden_layers"),
    size_key<&ModelConfig::heads>("n_head"),
    size_key<&ModelConfig::heads>("num_attention_heads"),
    {"num_key_value_heads", read_kv_heads, write_kv_heads},
    {"head_dim", read_head_dim, write_head_dim},
    {"n_inner", read_inner, write_inner},
    {"intermediate_size", read_size<&ModelConfig::mlp_hidden>, write_mlp},
    number_key<&ModelConfig::norm_eps>("layer_norm_epsilon"),
    number_key<&ModelConfig::norm_eps>("layer_norm_eps"),
    number_key<&ModelConfig::norm_eps>("rms_norm_eps"),
    {"activation_function", read_activation, write_activation},
    {"hidden_act", read_activation, write_activation},
    {"hidden_activation", read_activation, write_activation},
    {"tie_word_embeddings", read_flag<&ModelConfig::tied_head>,
     write_choice<&ModelConfig::ties_head>},
    {"attention_bias", read_flag<&ModelConfig::attention_bias>,
     write_choice<&ModelConfig::has_attention_bias>},
    {"mlp_bias", read_flag<&ModelConfig::mlp_bias>, write_choice<&ModelConfig::has_mlp_bias>},
    {"qk_layernorm", read_flag<&ModelConfig::query_key_norm>,
     write_flag<&ModelConfig::query_key_norm>},
    {"use_parallel_residual", read_flag<&ModelConfig::parallel_residual>,
     write_flag<&ModelConfig::parallel_residual>},
    {"scale_attn_weights", read_scale_by_head, write_scale_by_head},
    {"scale_attn_by_inverse_layer_idx", read_flag<&ModelConfig::attention_scale_by_layer>,
     write_flag<&ModelConfig::attention_scale_by_layer>},
    {"attention_multiplier", read_number<&ModelConfig::attention_scale>, write_multiplier},
    {"query_pre_attn_scalar", read_query_scalar, write_query_scalar},
    {"attn_logit_softcapping", read_cap<&ModelConfig::score_cap>,
     write_cap<&ModelConfig::score_cap>},
    {"final_logit_softcapping", read_cap<&ModelConfig::logit_cap>,
     write_cap<&ModelConfig::logit_cap>},
    number_key<&ModelConfig::embedding_scale>("embedding_multiplier"),
    number_key<&ModelConfig::residual_scale>("residual_multiplier"),
    number_key<&ModelConfig::logit_divisor>("logits_scaling"),
    {"pad_token_id", read_pad_token, write_pad_token},
});

}  // namespace

Json value_of(const Json& object, std::string_view key) {
  return object.is_object() ? object.value(std::string(key), Json()) : Json();
}

std::string to_words(const Json& value) {
  constexpr size_t kMost = 120;
  std::string words = value.is_string() ? value.get<std::string>() : write_json(value);
  if (words.size() > kMost) words = words.substr(0, kMost) + "...";
  return words;
}

bool is_positive(const Json& value) {
  return value.is_number() && value.get<double>() > 0 && std::isfinite(value.get<double>());
}

bool is_size(const Json& value) {
  return value.is_number_integer() && value >= 1 && value <= INT_MAX;
}

std::span<const ConfigKey> config_keys() { return kKeys; }

void fail_to_write(const ModelConfig& model, std::string_view setting, const std::string& value) {
  fail(ErrorKind::kConfig,
       "write config.json: model.{} is {}, for which the config.json of {} has no words", setting,
       value, model.family);
}

}  // namespace gxp
