// A GGUF file's keys and tensors as a model that gxp computes, and back: families.h has the names
// and layouts, settings.h the settings.
//
// llama.cpp computes with norms, biases and position tables of F32 only, so those of BF16 and F16
// models are widened, which loses nothing; the key gxp.widened_from keeps the type, and reading
// gives it back. Where adding 1 to the norms of a Gemma in F32 rounds, the key
// gxp.unshifted.TENSOR keeps the weights as they were.
#pragma once

#include <string>
#include <vector>

#include "lib/arch/model_config.h"
#include "lib/base/error.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Makes `tensors`, as they are in the file, those of a model that gxp computes: its names, layout
// and order. False: gxp does not implement the model, as an unknown key, a missing tensor or one
// too many shows; `tensors` and `model` are then unchanged.
Support take_gguf_model(const GgufHeader& header, std::vector<NamedTensor>& tensors,
                        ModelConfig& model);

struct GgufModel {
  std::vector<GgufKey> keys;  // all that llama.cpp requires but the tokenizer, and gxp's own
  std::vector<NamedTensor> tensors;
};

// `weights` are the model's, in gxp's order. kConfig: GGUF cannot say one of the settings. Reads the
// norms of a Gemma, and the head of an untied GPT-2.
GgufModel make_gguf_model(const std::vector<NamedTensor>& weights, const ModelConfig& model);

}  // namespace gxp
