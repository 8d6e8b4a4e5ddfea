// llama.cpp's keys of a model that say a setting by themselves. Those that settings.cc's functions
// write and read by hand: RoPE's, windows.
#pragma once

#include <array>
#include <string_view>

#include "lib/arch/model_config.h"

namespace gxp {

// Positive numbers. `setting`: only families with it have the key; "": all.
struct GgufSize {
  std::string_view theirs;
  int ModelConfig::*member;
  std::string_view setting = {};
  bool is_optional = false;  // for readers
};
inline constexpr std::array kGgufSizes = {
    GgufSize{"block_count", &ModelConfig::layers},
    GgufSize{"context_length", &ModelConfig::context},
    GgufSize{"embedding_length", &ModelConfig::hidden},
    GgufSize{"feed_forward_length", &ModelConfig::mlp_hidden},
    GgufSize{"attention.head_count", &ModelConfig::heads},
    GgufSize{"attention.head_count_kv", &ModelConfig::kv_heads, "kv_heads", true},
    GgufSize{"attention.key_length", &ModelConfig::head_size, "head_size", true},
    GgufSize{"attention.value_length", &ModelConfig::head_size, "head_size", true},
    GgufSize{"vocab_size", &ModelConfig::vocab_size, {}, true}};

struct GgufNumber {
  std::string_view family;
  std::string_view theirs;
  double ModelConfig::*member;
  double absent;           // what llama.cpp computes with if there is no such key
  bool is_written = true;  // also where it is that
};
inline constexpr std::array kGgufNumbers = {
    GgufNumber{"gemma2", "attn_logit_softcapping", &ModelConfig::score_cap, 50},
    GgufNumber{"gemma2", "final_logit_softcapping", &ModelConfig::logit_cap, 30},
    GgufNumber{"gemma3_text", "final_logit_softcapping", &ModelConfig::logit_cap, 0, false},
    GgufNumber{"gemma3_text", "rope.freq_base_swa", &ModelConfig::rope_local_theta, 10000},
    GgufNumber{"granite", "attention.scale", &ModelConfig::attention_scale, 0, false},
    GgufNumber{"granite", "embedding_scale", &ModelConfig::embedding_scale, 1},
    GgufNumber{"granite", "residual_scale", &ModelConfig::residual_scale, 1},
    GgufNumber{"granite", "logit_scale", &ModelConfig::logit_divisor, 1}};

}  // namespace gxp
