// Source: transformers 5.24, models/*/configuration_*.py. Keys of transformers 4 that 5 still reads
// have the values that their absence means.
#include <map>

#include "lib/arch/config_json/config_keys.h"

namespace gxp {
namespace {

Json with(Json keys, const Json& more) {
  keys.update(more);
  return keys;
}

struct ClassSizes {
  int vocabulary, positions, hidden, layers, heads, mlp;
};

Json sizes_json(const ClassSizes& sizes) {
  return {{"vocab_size", sizes.vocabulary},
          {"max_position_embeddings", sizes.positions},
          {"hidden_size", sizes.hidden},
          {"num_hidden_layers", sizes.layers},
          {"num_attention_heads", sizes.heads},
          {"intermediate_size", sizes.mlp},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", false},
          {"rope_parameters", nullptr},
          {"rope_scaling", nullptr},
          {"original_max_position_embeddings", nullptr}};
}

// Of families after Llama.
Json llama_json(const ClassSizes& sizes, const Json& more) {
  return with(with(sizes_json(sizes), {{"num_key_value_heads", nullptr},
                                       {"head_dim", nullptr},
                                       {"rms_norm_eps", 1e-6},
                                       {"pad_token_id", nullptr},
                                       {"rope_theta", 10000.0},
                                       {"partial_rotary_factor", 1.0}}),
              more);
}

const Json kQwenWindow = {{"sliding_window", 4096},
                          {"use_sliding_window", false},
                          {"max_window_layers", 28},
                          {"layer_types", nullptr}};

Json gpt2_json() {
  return {{"vocab_size", 50257},
          {"n_positions", 1024},
          {"n_embd", 768},
          {"n_layer", 12},
          {"n_head", 12},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"tie_word_embeddings", true}};
}

Json gpt_neox_json() {
  return with(sizes_json({50432, 2048, 6144, 44, 64, 24576}), {{"hidden_act", "gelu"},
                                                               {"layer_norm_eps", 1e-5},
                                                               {"use_parallel_residual", true},
                                                               {"attention_bias", true},
                                                               {"rotary_emb_base", 10000.0},
                                                               {"rotary_pct", 0.25}});
}

Json smollm3_json() {
  return llama_json({128256, 32768, 2048, 36, 16, 11008}, {{"num_key_value_heads", 4},
                                                           {"pad_token_id", 128004},
                                                           {"rope_theta", 2000000.0},
                                                           {"tie_word_embeddings", true},
                                                           {"attention_bias", false},
                                                           {"mlp_bias", false},
                                                           {"use_sliding_window", false},
                                                           {"sliding_window", nullptr},
                                                           {"layer_types", nullptr},
                                                           {"no_rope_layers", nullptr},
                                                           {"no_rope_layer_interval", 4}});
}

Json gemma_json(const ClassSizes& sizes, const Json& more) {
  return llama_json(sizes, with({{"head_dim", 256},
                                 {"pad_token_id", 0},
                                 {"tie_word_embeddings", true},
                                 {"attention_bias", false}},
                                more));
}

// Their key of the activation has another name.
Json gemma2_json(const ClassSizes& sizes, const Json& more) {
  Json keys = gemma_json(sizes, with({{"num_key_value_heads", 4},
                                      {"hidden_activation", "gelu_pytorch_tanh"},
                                      {"query_pre_attn_scalar", 256},
                                      {"sliding_window", 4096},
                                      {"layer_types", nullptr}},
                                     more));
  keys.erase("hidden_act");
  return keys;
}

Json phi_json() {
  Json keys = llama_json({51200, 2048, 2048, 24, 32, 8192}, {{"hidden_act", "gelu_new"},
                                                             {"layer_norm_eps", 1e-5},
                                                             {"qk_layernorm", false},
                                                             {"partial_rotary_factor", 0.5}});
  keys.erase("rms_norm_eps");
  return keys;
}

Json phi3_json() {
  Json keys =
      llama_json({32064, 4096, 3072, 32, 32, 8192},
                 {{"rms_norm_eps", 1e-5}, {"pad_token_id", 32000}, {"sliding_window", nullptr}});
  keys.erase("original_max_position_embeddings");  // of longrope, which gxp does not compute
  return keys;
}

std::map<std::string, Json, std::less<>> all_defaults() {
  const Json biases = {{"attention_bias", false}, {"mlp_bias", false}};
  return {{"gpt2", gpt2_json()},
          {"gpt_neox", gpt_neox_json()},
          {"llama", llama_json({32000, 2048, 4096, 32, 32, 11008}, biases)},
          {"mistral", llama_json({32000, 131072, 4096, 32, 32, 14336},
                                 {{"num_key_value_heads", 8}, {"sliding_window", 4096}})},
          {"qwen2", llama_json({151936, 32768, 4096, 32, 32, 22016},
                               with(kQwenWindow, {{"num_key_value_heads", 32}}))},
          {"qwen3", llama_json({151936, 32768, 4096, 32, 32, 22016},
                               with(kQwenWindow, {{"num_key_value_heads", 32},
                                                  {"head_dim", 128},
                                                  {"attention_bias", false}}))},
          {"smollm3", smollm3_json()},
          {"gemma", gemma_json({256000, 8192, 3072, 28, 16, 24576},
                               {{"num_key_value_heads", 16}, {"hidden_act", "gelu_pytorch_tanh"}})},
          {"gemma2",
           gemma2_json({256000, 8192, 2304, 26, 8, 9216},
                       {{"final_logit_softcapping", 30.0}, {"attn_logit_softcapping", 50.0}})},
          {"gemma3_text",
           gemma2_json({262208, 131072, 2304, 26, 8, 9216}, {{"final_logit_softcapping", nullptr},
                                                             {"rope_theta", 1000000.0},
                                                             {"rope_local_base_freq", 10000.0},
                                                             {"sliding_window_pattern", 6}})},
          {"phi", phi_json()},
          {"phi3", phi3_json()},
          {"olmo2",
           llama_json({50304, 2048, 4096, 32, 32, 11008},
                      {{"rms_norm_eps", 1e-5}, {"pad_token_id", 1}, {"attention_bias", false}})},
          {"granite", llama_json({32000, 2048, 4096, 32, 32, 11008},
                                 with(biases, {{"embedding_multiplier", 1.0},
                                               {"residual_multiplier", 1.0},
                                               {"logits_scaling", 1.0},
                                               {"attention_multiplier", 1.0}}))}};
}

}  // namespace

const Json& class_defaults(const Family& family) {
  static const auto kDefaults = all_defaults();
  return kDefaults.at(std::string(family.name));
}

std::vector<std::string_view> dropout_keys(const Family& family) {
  if (family.name == "gpt2") return {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
  if (family.name == "gpt_neox") return {"attention_dropout", "hidden_dropout"};
  if (family.name == "phi" || family.name == "phi3")
    return {"embd_pdrop", "resid_pdrop", "attention_dropout"};
  return {"attention_dropout"};
}

}  // namespace gxp
