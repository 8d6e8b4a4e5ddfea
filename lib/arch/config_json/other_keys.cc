// The keys of config.json that no setting follows from.
#include <algorithm>
#include <array>
#include <map>

#include "lib/arch/config_json/config_keys.h"

namespace gxp {
namespace {

constexpr std::string_view kWithoutEffect[] = {
    // The file, its class and its makers.
    "_name_or_path", "_commit_hash", "architectures", "auto_map", "dtype", "model_type",
    "torch_dtype", "transformers_version", "name_or_path", "is_llama_config", "unsloth_fixed",
    "unsloth_version", "task_specific_params", "finetuning_task", "problem_type", "tokenizer_class",
    "prefix", "use_bfloat16", "tf_legacy_loss", "torchscript",
    // How it is computed, to the same numbers.
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
    "attn_implementation", "_experts_implementation", "_flash_attn_2_enabled", "use_cache",
    "cache_implementation", "chunk_size_feed_forward", "pretraining_tp", "output_attentions",
    "output_hidden_states", "return_dict", "return_dict_in_generate", "output_scores",
    // Tokens, and generation.
    "bos_token_id", "eos_token_id", "sep_token_id", "decoder_start_token_id", "max_length",
    "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
    "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
    // Classes with other heads.
    "id2label", "label2id", "num_labels", "classifier_dropout", "summary_type", "summary_use_proj",
    "summary_activation", "summary_proj_to_labels", "summary_first_dropout", "is_decoder",
    "tie_encoder_decoder", "cross_attention_hidden_size",
    // Training, of which gxp has settings of its own; dropout is described (config_json.h).
    "initializer_range", "attention_dropout", "hidden_dropout", "attn_pdrop", "embd_pdrop",
    "resid_pdrop", "attention_probs_dropout_prob", "hidden_dropout_prob",

    // Old names that transformers does not read.
    "n_ctx", "max_sequence_length", "seq_length", "_sliding_window_pattern", "model_max_length"};

// Keys of some families that their classes do not read.
struct UnreadKey {
  std::string_view family, key;
};
constexpr std::array kUnread = {
    UnreadKey{"gpt2", "pad_token_id"},
    UnreadKey{"gpt2", "reorder_and_upcast_attn"},  // the order of rounding
    UnreadKey{"gpt_neox", "pad_token_id"},
    UnreadKey{"gpt_neox", "rope_theta"},
    UnreadKey{"gpt_neox", "partial_rotary_factor"},
    UnreadKey{"smollm3", "max_window_layers"},
    UnreadKey{"gemma", "hidden_activation"},
    UnreadKey{"gemma2", "hidden_act"},
    UnreadKey{"gemma3_text", "hidden_act"},
    UnreadKey{"gemma3_text", "attn_logit_softcapping"},
    UnreadKey{"phi3", "original_max_position_embeddings"},  // of longrope
};

// What changes the function of some model, and the value at which it changes nothing.
const std::map<std::string, Json, std::less<>>& only_values() {
  static const std::map<std::string, Json, std::less<>> kOnly = {
      // Masks and other inputs.
      {"add_cross_attention", false},
      {"use_bidirectional_attention", false},
      {"is_encoder_decoder", false},
      {"is_causal", true},
      {"sliding_window", nullptr},
      {"use_sliding_window", false},
      // Stored numbers that are no weights before they are scaled.
      {"quantization_config", nullptr},
      {"compression_config", nullptr},
      {"pruned_heads", Json::object()},
      // Biases, norms and blocks of another form.
      {"attention_bias", false},
      {"mlp_bias", false},
      {"lm_head_bias", false},
      {"qk_norm", false},
      {"use_qk_norm", false},
      {"qk_layernorm", false},
      {"use_parallel_residual", false},
      {"parallel_attn", false},
      {"num_experts", 0},
      {"num_local_experts", 0},
      {"n_routed_experts", 0},
      {"moe_num_experts", 0},
      // Caps and factors.
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr},
      {"query_pre_attn_scalar", nullptr},
      {"attention_multiplier", nullptr},
      {"embedding_multiplier", 1.0},
      {"residual_multiplier", 1.0},
      {"logits_scaling", 1.0},
      {"logit_scale", 1.0},
      {"scale_emb", 1.0},
      {"scale_depth", nullptr},
      {"clip_qkv", nullptr},
      // Positions.
      {"alibi", false},
      {"use_alibi", false},
      {"rope_interleave", false},
      {"rope_interleaved", false},
      {"use_mrope", false},
      {"interpolate_factor", 1},
      {"full_attn_mod", 1}};
  return kOnly;
}

}  // namespace

bool has_no_effect(const Family& family, std::string_view key) {
  return std::ranges::find(kWithoutEffect, key) != std::end(kWithoutEffect) ||
         std::ranges::any_of(kUnread, [&](const UnreadKey& row) {
           return row.family == family.name && row.key == key;
         });
}

const Json* only_value(const Family& family, std::string_view key) {
  const auto found = only_values().find(key);
  if (found == only_values().end() || class_defaults(family).contains(std::string(key)))
    return nullptr;
  return &found->second;
}

}  // namespace gxp
