// GGUF's names and layouts for the settings of [model] and the tensors, for the families that both
// support. One more family is one row in model.cc.
//
// llama   Matrices are (outputs, inputs), as in gxp. Positions turn pairs of neighbours, where
//         gxp's and Hugging Face's Llama turns the two halves of a head: of each head of e
//         channels, row 2j + k of attn_q and attn_k is row k e/2 + j of q_proj and k_proj.
// gpt2    Matrices are (outputs, inputs), transposed against gxp's; the head is tied.
//
// llama.cpp computes with norms, biases and position tables of F32 only, so those of BF16 and F16
// models are widened, which loses nothing; the key gxp.widened_from keeps the type, and reading
// gives it back.
// Sources: llama.cpp, gguf-py/gguf/{constants,tensor_mapping}.py, conversion/{base,llama,gpt2}.py,
// src/llama-arch.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/model_config.h"
#include "lib/base/error.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

bool gguf_has_family(std::string_view family);
std::string gguf_families_in_words();  // "llama or gpt2"

// Makes `tensors`, as they are in the file, those of a model that gxp computes: its names, layout
// and order. False: gxp does not implement the model, as an unknown key, a missing tensor or one
// too many shows; `tensors` and `model` are then unchanged.
Support take_gguf_model(const GgufHeader& header, std::vector<NamedTensor>& tensors,
                        ModelConfig& model);

// The model's weights, which are in gxp's order, under GGUF's names and in its layout.
std::vector<NamedTensor> to_gguf(const std::vector<NamedTensor>& weights, const ModelConfig& model);

// The keys that llama.cpp requires of a model, except those of its tokenizer. `weights` as for
// to_gguf(). kConfig: sizes that make no model, or a number that does not fit into the F32 that
// GGUF has for it.
std::vector<GgufKey> gguf_keys(const std::vector<NamedTensor>& weights, const ModelConfig& model);

}  // namespace gxp
