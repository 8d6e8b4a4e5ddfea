#include "lib/tools/checkpoints/named_maps.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/torch/pt_file.h"

namespace gxp {
namespace {

// Llama's rows are in Meta's order; torchtitan's Qwen3 turns the two halves of a head, as Hugging
// Face's.
constexpr std::string_view kPairs = R"toml(
[[reorder]]
from = 'layers[.]\d+[.]attention[.](qkv_linear[.])?w[qk][.]weight'
rows = "pairs-to-halves"
)toml";
constexpr std::string_view kHalves = R"toml(
[[reorder]]
from = 'layers[.]\d+[.]attention[.](qkv_linear[.])?w[qk][.]weight'
rows = "unchanged"
)toml";

constexpr std::string_view kMetaNames = R"toml(
[[drop]]
from = 'rope[.]freqs|freqs_cis|rope_cache|train_state[.].*'
optional = true
[[rename]]
from = 'layers[.](\d+)[.]attention[.](?:qkv_linear[.])?w([qkv])[.]weight'
to = 'model.layers.$1.self_attn.$2_proj.weight'
[[rename]]
from = 'layers[.](\d+)[.]attention[.]wo[.]weight'
to = 'model.layers.$1.self_attn.o_proj.weight'
[[rename]]
from = 'layers[.](\d+)[.]attention[.]([qk]_norm)[.]weight'
to = 'model.layers.$1.self_attn.$2.weight'
optional = true
[[rename]]
from = 'layers[.](\d+)[.]feed_forward[.]w1[.]weight'
to = 'model.layers.$1.mlp.gate_proj.weight'
[[rename]]
from = 'layers[.](\d+)[.]feed_forward[.]w2[.]weight'
to = 'model.layers.$1.mlp.down_proj.weight'
[[rename]]
from = 'layers[.](\d+)[.]feed_forward[.]w3[.]weight'
to = 'model.layers.$1.mlp.up_proj.weight'
[[rename]]
from = 'layers[.](\d+)[.]attention_norm[.]weight'
to = 'model.layers.$1.input_layernorm.weight'
[[rename]]
from = 'layers[.](\d+)[.]ffn_norm[.]weight'
to = 'model.layers.$1.post_attention_layernorm.weight'
[[rename]]
from = 'tok_embeddings[.]weight'
to = 'model.embed_tokens.weight'
[[rename]]
from = 'norm[.]weight'
to = 'model.norm.weight'
[[rename]]
from = 'output[.]weight'
to = 'lm_head.weight'
optional = true
)toml";

constexpr std::string_view kNanoGptRules = R"toml(
[[rename]]
from = '_orig_mod[.](.*)'
to = '$1'
optional = true
[[transpose]]
from = 'transformer[.]h[.]\d+[.](attn|mlp)[.](c_attn|c_proj|c_fc)[.]weight'
[[zeros]]
from = '(transformer[.](h[.]\d+[.](ln_[12]|attn[.]c_attn|attn[.]c_proj|mlp[.]c_fc|mlp[.]c_proj)|ln_f))[.]weight'
to = '$1.bias'
)toml";

struct NamedMap {
  std::string_view name;
  std::string_view family;
  std::array<std::string_view, 2> rules;  // one after the other
};

constexpr std::array kNamedMaps = {NamedMap{"torchtitan", "llama", {kPairs, kMetaNames}},
                                   NamedMap{"torchtitan", "qwen3", {kHalves, kMetaNames}},
                                   NamedMap{"meta-llama", "llama", {kPairs, kMetaNames}},
                                   NamedMap{"nanogpt", "gpt2", {kNanoGptRules}}};

// By the names of nanoGPT's GPTConfig.
constexpr std::array<std::pair<const char*, const char*>, 5> kModelArgs = {
    {{"vocab_size", "model.vocab_size"},
     {"block_size", "model.context"},
     {"n_embd", "model.hidden"},
     {"n_layer", "model.layers"},
     {"n_head", "model.heads"}}};

std::string text_of(const NamedMap& map) {
  return std::string(map.rules[0]) + std::string(map.rules[1]);
}

}  // namespace

std::vector<std::string_view> map_names() {
  std::vector<std::string_view> names;
  for (const NamedMap& map : kNamedMaps)
    if (names.empty() || names.back() != map.name) names.push_back(map.name);
  return names;
}

std::string rules_of_map(std::string_view name, const KeyValues& settings) {
  const std::string quoted = find_value(settings, "model.family").value_or("");
  const std::string family = quoted.size() < 2 ? "" : quoted.substr(1, quoted.size() - 2);
  std::vector<std::string_view> known;
  for (const NamedMap& map : kNamedMaps) {
    if (map.name != name) continue;
    if (map.family == family) return text_of(map);
    known.push_back(map.family);
  }
  if (!family.empty())
    fail(ErrorKind::kConfig, "--map {}: the model is a {}; this map is for {}", name, family,
         joined(known, " and "));
  if (known.size() > 1)
    fail(ErrorKind::kConfig,
         "--map {}: whether the model is of {} is not known; --config DIR tells it", name,
         joined(known, " or "));
  return text_of(*std::ranges::find(kNamedMaps, name, &NamedMap::name));
}

KeyValues recorded_model(std::string_view name, const NamedTensors& tensors) {
  const auto text = tensors.metadata.find(std::string(kModelArgsKey));
  if (name != "nanogpt" || text == tensors.metadata.end()) return {};
  const Json args = parse_json(text->second, "model_args");
  KeyValues settings = {{"model.family", "\"gpt2\""}, {"model.activation", "\"gelu\""}};
  for (const auto& [key, setting] : kModelArgs)
    settings.emplace_back(
        setting, std::to_string(to_unsigned(member(args, key, "model_args"), "model_args")));
  return settings;
}

}  // namespace gxp
