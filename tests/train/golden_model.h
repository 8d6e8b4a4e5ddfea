// The model of a golden run's spec.json, which has the names of Hugging Face's configurations, as
// settings of [model].
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace gxp {

inline nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

inline std::vector<std::pair<std::string, nlohmann::json>> golden_model(
    const nlohmann::json& spec) {
  static const std::vector<std::pair<const char*, const char*>> kKeys = {
      {"vocab_size", "vocab_size"},
      {"context", "n_positions"},
      {"context", "max_position_embeddings"},
      {"hidden", "n_embd"},
      {"hidden", "hidden_size"},
      {"layers", "n_layer"},
      {"layers", "num_hidden_layers"},
      {"heads", "n_head"},
      {"heads", "num_attention_heads"},
      {"kv_heads", "num_key_value_heads"},
      {"head_size", "head_dim"},
      {"mlp_hidden", "intermediate_size"},
      {"norm_eps", "rms_norm_eps"},
      {"norm_eps", "layer_norm_epsilon"},
      {"rope_theta", "rope_theta"},
      {"tied_head", "tie_word_embeddings"}};
  std::vector<std::pair<std::string, nlohmann::json>> settings = {{"family", spec["arch"]}};
  for (const auto& [ours, theirs] : kKeys) {
    if (spec["model"].contains(theirs)) settings.emplace_back(ours, spec["model"][theirs]);
  }
  return settings;
}

}  // namespace gxp
