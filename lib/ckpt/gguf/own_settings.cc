#include "lib/ckpt/gguf/own_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/arch/rope_scaling.h"
#include "lib/ckpt/gguf/settings.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/config/model_source.h"

namespace gxp {
namespace {

constexpr std::string_view kOwnPrefix = "gxp.";
constexpr std::string_view kOwnSettings = "gxp.model.";

// Llama 3.1 to 3.3, besides the factor.
constexpr double kLlama3Low = 1, kLlama3High = 4;
constexpr int kLlama3Context = 8192;

// "model.pad_token" and its value as TOML, of each key but the family's.
KeyValues own_settings(const GgufHeader& header) {
  KeyValues told;
  for (auto key = header.keys.lower_bound(std::string(kOwnSettings));
       key != header.keys.end() && key->first.starts_with(kOwnSettings); ++key)
    if (const auto* const text = std::get_if<std::string>(&key->second); text != nullptr)
      told.emplace_back(key->first.substr(kOwnPrefix.size()), *text);
  return told;
}

bool are_alike(const std::vector<float>& told, const std::vector<float>& computed) {
  constexpr double kRounding = 1e-5;  // of the F32 in which others compute them
  return std::ranges::equal(told, computed, [](double a, double b) {
    return std::abs(a - b) <= kRounding * std::abs(b);
  });
}

void copy_llama3(const ModelConfig& from, ModelConfig& to) {
  to.rope_scaling = from.rope_scaling;
  to.rope_factor = from.rope_factor;
  to.rope_original_context = from.rope_original_context;
  to.rope_low_freq_factor = from.rope_low_freq_factor;
  to.rope_high_freq_factor = from.rope_high_freq_factor;
}

// The settings that the divisors are usually made from; nothing if they are made from others.
std::optional<ModelConfig> usual_llama3(ModelConfig model, const std::vector<float>& rope_freqs) {
  model.rope_scaling = RopeScaling::kLlama3;
  model.rope_factor = *std::ranges::max_element(rope_freqs);
  model.rope_original_context = kLlama3Context;
  model.rope_low_freq_factor = kLlama3Low;
  model.rope_high_freq_factor = kLlama3High;
  if (!(model.rope_factor > 0) || !are_alike(rope_freqs, rope_freqs_of(model))) return std::nullopt;
  return model;
}

bool is_gelu(const ModelConfig& model) {
  return model.activation_used() == Activation::kGelu ||
         model.activation_used() == Activation::kGeluTanh;
}

// `model` with all of `told` that llama.cpp's keys leave open.
ModelConfig with_open_settings(const ModelConfig& told, const std::vector<float>& rope_freqs,
                               ModelConfig model) {
  model.pad_token = told.pad_token;
  if (model.rope_scaling == RopeScaling::kNone && told.rope_scaling == RopeScaling::kLlama3 &&
      !rope_freqs.empty())
    copy_llama3(told, model);
  const bool is_yarn = model.rope_scaling == RopeScaling::kYarn;
  if (is_yarn && float(make_rotary(told).factor) == float(make_rotary(model).factor))
    model.rope_attention_factor = told.rope_attention_factor;
  if (turning_channels(told) == turning_channels(model)) model.rope_partial = told.rope_partial;
  if (model.family == "gpt_neox" && is_gelu(told)) model.activation = told.activation;
  if (model.window == 0 && told.window >= model.context) {
    model.window = told.window;
    model.window_layers = told.window_layers;
  }
  return model;
}

Support take_told(const KeyValues& settings, const std::vector<float>& rope_freqs,
                  ModelConfig& model) {
  RunConfig run;
  run.model = model;
  std::string problem = take_settings("model", settings, run);
  if (problem.empty()) problem = first_model_problem(run.model);
  if (!problem.empty()) return {false, fmt::format("{}{}", kOwnPrefix, problem)};
  const ModelConfig open = with_open_settings(run.model, rope_freqs, model);
  for (const auto& [key, text] : settings) {
    if (find_value(settings_of(open), key) == text || key == "model.family") continue;
    return {false, fmt::format("{}{} is {}, against llama.cpp's keys", kOwnPrefix, key, text)};
  }
  model = open;
  return {};
}

}  // namespace

std::string own_family(const GgufHeader& header) { return family_told(own_settings(header)); }

Support take_own_settings(const GgufHeader& header, const GgufFamily& row,
                          const std::vector<float>& rope_freqs, ModelConfig& model) {
  if (!rope_freqs.empty() && !row.takes_rope_freqs)
    return {false, fmt::format("rope_freqs.weight does not belong to {}", row.architecture)};
  const KeyValues settings = own_settings(header);
  if (!settings.empty())
    if (Support taken = take_told(settings, rope_freqs, model); !taken) return taken;
  if (std::string problem = first_model_problem(model); !problem.empty()) return {false, problem};
  if (rope_freqs.empty()) return {};
  if (model.rope_scaling == RopeScaling::kLlama3 && are_alike(rope_freqs, rope_freqs_of(model)))
    return {};
  const auto usual =
      model.rope_scaling == RopeScaling::kNone ? usual_llama3(model, rope_freqs) : std::nullopt;
  if (!usual) return {false, "rope_freqs.weight does not have the divisors of Llama 3"};
  model = *usual;
  return {};
}

std::vector<GgufKey> own_gguf_keys(const ModelConfig& full, const GgufFamily& row) {
  std::vector<std::string_view> wanted;
  const auto usual =
      std::ranges::find(gguf_families(), row.architecture, &GgufFamily::architecture);
  if (usual->family != row.family) wanted.push_back("family");
  if (full.pad_token >= 0) wanted.push_back("pad_token");
  if (full.rope_scaling == RopeScaling::kLlama3)
    wanted.insert(wanted.end(), {"rope_scaling", "rope_factor", "rope_original_context",
                                 "rope_low_freq_factor", "rope_high_freq_factor"});
  if (full.rope_scaling == RopeScaling::kYarn) wanted.push_back("rope_attention_factor");
  if (full.rope_partial != double(turning_channels(full)) / full.head_size)
    wanted.push_back("rope_partial");
  if (row.family == "gpt_neox" && full.activation_used() == Activation::kGeluTanh)
    wanted.push_back("activation");
  const bool has_key = row.family == "phi3" || row.family.starts_with("gemma");
  if (full.window >= full.context && !has_key)
    wanted.insert(wanted.end(), {"window", "window_layers"});
  std::vector<GgufKey> keys;
  for (const auto& [key, text] : settings_of(full))
    if (std::ranges::find(wanted, key.substr(key.find('.') + 1)) != wanted.end())
      keys.emplace_back(fmt::format("{}{}", kOwnPrefix, key), text);
  return keys;
}

}  // namespace gxp
