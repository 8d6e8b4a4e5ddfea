#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "lib/arch/family.h"
#include "lib/arch/layer_set.h"
#include "lib/arch/make_decoder.h"
#include "lib/arch/rope_scaling.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

using Keys = std::vector<std::string_view>;

// Settings that come together.
const Keys kRopeScaling = {
    "rope_scaling",         "rope_factor",           "rope_original_context",
    "rope_low_freq_factor", "rope_high_freq_factor", "rope_beta_fast",
    "rope_beta_slow",       "rope_truncate",         "rope_attention_factor"};
const Keys kWindow = {"window", "window_layers"};

Keys together(Keys keys, std::initializer_list<Keys> others) {
  for (const Keys& more : others) keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// Of families that came after Llama: grouped heads, rotary positions, a padding token.
Keys after_llama(Keys keys) {
  return together({"kv_heads", "head_size", "rope_theta", "pad_token"},
                  {kRopeScaling, std::move(keys)});
}

DecoderNames with_four_norms(DecoderNames names) {
  names.after_1 = "post_attention_layernorm";
  names.before_2 = "pre_feedforward_layernorm";
  names.after_2 = "post_feedforward_layernorm";
  return names;
}

// Radford et al., 2019.
Family gpt2() {
  return {.name = "gpt2",
          .architecture = "GPT2LMHeadModel",
          .prefix = "transformer.",
          .kind = {.norm = NormKind::kLayer,
                   .qkv = QkvTensors::kBlocks,
                   .gated = false,
                   .inputs_first = true,
                   .position_table = true},
          .names = {.unit = "h.{}",
                    .block = "transformer.h.{}.",
                    .token_table = "transformer.wte",
                    .position_table = "transformer.wpe",
                    .before_1 = "ln_1",
                    .qkv = "attn.c_attn",
                    .output = "attn.c_proj",
                    .before_2 = "ln_2",
                    .up = "mlp.c_fc",
                    .down = "mlp.c_proj",
                    .final_norm = "transformer.ln_f"},
          .defaults = {.activation = Activation::kGeluTanh,
                       .tied_head = true,
                       .attention_bias = true,
                       .mlp_bias = true},
          .keys = {"attention_scale", "attention_scale_by_layer"}};
}

// Black et al., arXiv:2204.06745.
Family gpt_neox() {
  return {.name = "gpt_neox",
          .architecture = "GPTNeoXForCausalLM",
          .prefix = "gpt_neox.",
          .kind = {.norm = NormKind::kLayer, .qkv = QkvTensors::kPerHead, .gated = false},
          .names = {.block = "gpt_neox.layers.{}.",
                    .token_table = "gpt_neox.embed_in",
                    .qkv = "attention.query_key_value",
                    .output = "attention.dense",
                    .up = "mlp.dense_h_to_4h",
                    .down = "mlp.dense_4h_to_h",
                    .final_norm = "gpt_neox.final_layer_norm",
                    .head = "embed_out"},
          .defaults = {.activation = Activation::kGelu, .attention_bias = true, .mlp_bias = true},
          .keys = together({"attention_bias", "parallel_residual", "rope_theta", "rope_partial"},
                           {kRopeScaling})};
}

// Touvron et al., arXiv:2302.13971 and 2307.09288.
Family llama() {
  return {.name = "llama",
          .architecture = "LlamaForCausalLM",
          .keys = after_llama({"attention_bias", "mlp_bias"})};
}

// Jiang et al., arXiv:2310.06825.
Family mistral() {
  return {.name = "mistral", .architecture = "MistralForCausalLM", .keys = after_llama(kWindow)};
}

// Yang et al., arXiv:2407.10671.
Family qwen2() {
  return {.name = "qwen2",
          .architecture = "Qwen2ForCausalLM",
          .kind = {.output_bias = false},
          .defaults = {.attention_bias = true},
          .keys = after_llama(kWindow)};
}

// Yang et al., arXiv:2505.09388.
Family qwen3() {
  return {.name = "qwen3",
          .architecture = "Qwen3ForCausalLM",
          .kind = {.query_key_norm = QueryKeyNorm::kPerHead},
          .keys = after_llama(together({"attention_bias"}, {kWindow}))};
}

Family smollm3() {
  return {
      .name = "smollm3",
      .architecture = "SmolLM3ForCausalLM",
      .defaults = {.tied_head = true},
      .keys = after_llama(together({"attention_bias", "mlp_bias", "unrotated_layers"}, {kWindow}))};
}

// arXiv:2403.08295.
Family gemma() {
  return {.name = "gemma",
          .architecture = "GemmaForCausalLM",
          .kind = {.norm_plus_one = true, .embedding_times_root = true},
          .defaults = {.activation = Activation::kGeluTanh, .tied_head = true},
          .keys = after_llama({"attention_bias"})};
}

// arXiv:2408.00118.
Family gemma2() {
  Family family = gemma();
  family.name = "gemma2";
  family.architecture = "Gemma2ForCausalLM";
  family.kind.norm_after = true;
  family.names = with_four_norms({});
  family.keys = after_llama(
      together({"attention_bias", "attention_scale", "score_cap", "logit_cap"}, {kWindow}));
  return family;
}

// arXiv:2503.19786.
Family gemma3_text() {
  Family family = gemma2();
  family.name = "gemma3_text";
  family.architecture = "Gemma3ForCausalLM";
  family.kind.query_key_norm = QueryKeyNorm::kPerHead;
  family.kind.local_rotary = true;
  family.keys = after_llama(
      together({"attention_bias", "attention_scale", "logit_cap", "rope_local_theta"}, {kWindow}));
  return family;
}

// Gunasekar et al., arXiv:2306.11644.
Family phi() {
  return {
      .name = "phi",
      .architecture = "PhiForCausalLM",
      .kind = {.norm = NormKind::kLayer,
               .one_norm = true,
               .parallel = true,
               .gated = false,
               .head_bias = true},
      .names = {.query_norm = "self_attn.q_layernorm",
                .key_norm = "self_attn.k_layernorm",
                .output = "self_attn.dense",
                .up = "mlp.fc1",
                .down = "mlp.fc2",
                .final_norm = "model.final_layernorm"},
      .defaults = {.activation = Activation::kGeluTanh, .attention_bias = true, .mlp_bias = true},
      .keys = after_llama({"query_key_norm", "rope_partial"})};
}

// Abdin et al., arXiv:2404.14219.
Family phi3() {
  return {.name = "phi3",
          .architecture = "Phi3ForCausalLM",
          .kind = {.qkv = QkvTensors::kParts, .fused_gate_up = true},
          .names = {.qkv = "self_attn.qkv_proj", .gate_up = "mlp.gate_up_proj"},
          .keys = after_llama(together({"rope_partial"}, {kWindow}))};
}

// arXiv:2501.00656.
Family olmo2() {
  return {
      .name = "olmo2",
      .architecture = "Olmo2ForCausalLM",
      .kind = {.norm_before = false, .norm_after = true, .query_key_norm = QueryKeyNorm::kAllHeads},
      .names = with_four_norms({}),
      .keys = after_llama({"attention_bias"})};
}

Family granite() {
  return {.name = "granite",
          .architecture = "GraniteForCausalLM",
          .keys = after_llama({"attention_bias", "mlp_bias", "attention_scale", "embedding_scale",
                               "residual_scale", "logit_divisor"})};
}

// Products of sizes stay within 64 bits (model_config.h).
std::string head_size_problem(const ModelConfig& model) {
  constexpr int64_t kMostChannels = 1 << 20;
  if (int64_t{model.heads} * model.head_size > kMostChannels)
    return fmt::format("times model.heads ({}) must be at most {}, is {}", model.heads,
                       kMostChannels, int64_t{model.heads} * model.head_size);
  return "";
}

// RoPE turns pairs of channels.
std::string turning_problem(const ModelConfig& model) {
  const bool has_rule = model.head_size == 0 && model.hidden % model.heads != 0;
  if (find_family(model.family).kind.position_table || has_rule) return "";
  const int channels = turning_channels(model);
  if (channels > 0 && channels % 2 == 0) return "";
  if (model.rope_partial == 1)
    return fmt::format("must be even for rotary positions, is {}{}", channels,
                       model.head_size == 0 ? " (model.hidden / model.heads)" : "");
  return fmt::format(
      "must be even for rotary positions: model.rope_partial ({}) of {} channels "
      "are {}",
      model.rope_partial, model.channels_per_head(), channels);
}

std::string layers_problem(const std::string& text, int layers) {
  if (parse_layers(text, layers)) return "";
  return fmt::format("must list layers below model.layers ({}), such as \"0-2,5\", is \"{}\"",
                     layers, text);
}

std::string band_problem(const ModelConfig& model) {
  if (model.rope_scaling != RopeScaling::kLlama3 ||
      model.rope_low_freq_factor < model.rope_high_freq_factor)
    return "";
  return fmt::format("must be below model.rope_high_freq_factor ({}), is {}",
                     model.rope_high_freq_factor, model.rope_low_freq_factor);
}

std::string pad_token_problem(const ModelConfig& model) {
  if (model.pad_token < model.vocab_size) return "";
  return fmt::format("must be below model.vocab_size ({}), is {}", model.vocab_size,
                     model.pad_token);
}

bool matches(const std::string& pattern, const std::string& name) {
  if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  for (const Family& family : families()) {
    const std::string_view model = family.prefix;
    if (name.starts_with(model) && fnmatch(pattern.c_str(), name.c_str() + model.size(), 0) == 0)
      return true;
  }
  return false;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      gpt2(),  gpt_neox(), llama(),       mistral(), qwen2(), qwen3(), smollm3(),
      gemma(), gemma2(),   gemma3_text(), phi(),     phi3(),  olmo2(), granite(),
  };
  return kFamilies;
}

const std::vector<SettingRule<ModelConfig>>& model_rules() {
  static const std::vector<SettingRule<ModelConfig>> kRules = {
      {"head_size", "heads", head_size_problem},
      {"head_size", "rope_partial", turning_problem},
      {"window_layers", "layers",
       [](const ModelConfig& m) { return layers_problem(m.window_layers, m.layers); }},
      {"unrotated_layers", "layers",
       [](const ModelConfig& m) { return layers_problem(m.unrotated_layers, m.layers); }},
      {"rope_low_freq_factor", "rope_high_freq_factor", band_problem},
      {"pad_token", "vocab_size", pad_token_problem},
  };
  return kRules;
}

bool Family::has(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }

std::vector<std::string_view> family_names() { return row_names(families()); }

std::string families_in_words() { return joined(family_names(), " or "); }

std::vector<std::string_view> families_with(std::string_view key) {
  return rows_with(families(), key);
}

const Family& find_family(std::string_view name) {
  return find_row(families(), name, "model.family", ErrorKind::kConfig);
}

Architecture make_architecture(const ModelConfig& config, DType compute, KeptOutputs kept,
                               const LoraConfig& lora) {
  return make_decoder(find_family(config.family), config, {compute, kept, lora});
}

void freeze(Architecture& architecture, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (UnitSpec& unit : architecture.units) {
      for (TensorSpec& tensor : unit.tensors) {
        if (!matches(pattern, tensor.name)) continue;
        tensor.frozen = true;
        found = true;
      }
    }
    if (!found)
      fail(ErrorKind::kConfig,
           "train.frozen '{}': matches none of the tensors {} to {}; gxp shard-plan --units lists "
           "them",
           pattern, architecture.units.front().tensors.front().name,
           architecture.units.back().tensors.back().name);
  }
  for (const UnitSpec& unit : architecture.units) {
    if (!unit.is_frozen()) return;
  }
  fail(ErrorKind::kConfig,
       "train.frozen: all tensors of the model are frozen, so there is nothing to train; leave out "
       "a pattern");
}

}  // namespace gxp
