// The differences between transformers 4 and 5 in a config.json of which gxp does not compute the
// model, and the key that both read with other defaults for each model: whether the head is tied.
// Source: transformers 5.24, modeling_rope_utils.py and models/*/configuration_*.py.
// Only the .cc files of this folder include it.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/json/json.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Adds the spelling that is missing of RoPE's settings (rope_parameters; rope_theta, rope_scaling,
// partial_rotary_factor, and GPT-NeoX's rotary_emb_base and rotary_pct) and of the type (dtype;
// torch_dtype), and tie_word_embeddings where the model's default is known. What is there stays.
void add_both_spellings(Json& config);

// Whether `architectures` names a class with a language model's head, or nothing.
bool is_language_model(const Json& config);

// kCorrupt, naming `path`, if the head is not tied and none is stored: transformers would load such
// a directory with random numbers in its place. Models whose head's name is not known, and classes
// without one, pass.
void check_head(const Json& config, const NamedTensors& tensors, const std::string& path);

}  // namespace gxp
