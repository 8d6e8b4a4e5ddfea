// The settings [model] as the keys of a GGUF file, and back. llama.cpp has no key for some settings
// and computes a single value of each: which, reading says, so that writing a model and reading it
// again shows what a file cannot say.
//
// Keys "gxp.model.SETTING" hold, as TOML writes it, what a reader cannot find in llama.cpp's:
//   family           where two have one architecture
//   rope_...         of llama3, whose tensor rope_freqs.weight says it all to llama.cpp; the factor
//                    and the share of RoPE that other keys have as F32 or rounded
//   activation       of GPT-NeoX: llama.cpp computes GELU in its tanh form, whichever is meant
//   window, ...      a window as long as the context, which changes nothing
//   pad_token        which matters in training alone
#pragma once

#include <vector>

#include "lib/arch/model_config.h"
#include "lib/base/error.h"
#include "lib/ckpt/gguf/families.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// llama.cpp's keys of the model, and gxp's own for what they do not say. kConfig: sizes that make no
// model, or a number that does not fit into the F32 that GGUF has for it.
std::vector<GgufKey> gguf_keys(const ModelConfig& model);

// What follows from the tensors.
struct GgufTensorFacts {
  uint64_t tensors = 0;
  uint64_t vocabulary = 0;  // rows of the token table
  bool ties_head = false;
  bool has_attention_bias = false, has_mlp_bias = false;
  std::vector<float> rope_freqs = {};  // divisors of the frequencies; none
};

// The row that the file's architecture and gxp's own key name; nullptr: none.
const GgufFamily* told_gguf_family(const GgufHeader& header);

// False: gxp does not compute the model, as a key that is unknown, or has such a value, shows.
Support read_gguf_settings(const GgufHeader& header, const GgufFamily& row,
                           const GgufTensorFacts& facts, ModelConfig& model);

// The divisors of llama3's frequencies: rope_freqs.weight.
std::vector<float> rope_freqs_of(const ModelConfig& model);

// "" or the first setting that the file, read as `said`, would change: "model.window is 6, ...".
std::string gguf_cannot_say(const ModelConfig& model, const ModelConfig& said);

}  // namespace gxp
