// The families that both gxp and llama.cpp know, one row each: what GGUF calls them and their
// tensors, how it lays those out, and what llama.cpp fixes. The keys are settings.h's matter.
//
// Tensors have the same names in all families, by their role in the decoder (lib/arch/decoder.h).
// Matrices are (outputs, inputs). What differs from Hugging Face's:
//   pairs     llama, mistral, smollm3, granite: positions turn pairs of neighbours, where Hugging
//             Face's turn the two halves of a head: of each head of e channels, row 2j + k of attn_q
//             and attn_k is row k e/2 + j of q_proj and k_proj
//   gpt2      matrices are transposed
//   gpt_neox  attn_qkv has all queries, all keys, all values; query_key_value those of each head
//   gemma     norms are stored with 1 added
// Sources: llama.cpp of October 2026: gguf-py/gguf/{constants,tensor_mapping}.py, conversion/*.py,
// src/models/*.cpp, src/llama-model.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/arch/architecture.h"
#include "lib/arch/model_config.h"

namespace gxp {

// Where llama.cpp reads the output head.
enum class GgufHead : uint8_t {
  kTied,    // always from the token table
  kStored,  // always from a tensor of its own
  kEither,  // from the token table if there is no tensor
};

enum class GgufForm : uint8_t {
  kPlain,
  kTransposed,
  kPairs,    // rows of heads, whose neighbours turn together
  kParts,    // all queries, all keys, all values
  kShifted,  // 1 is added
};

struct GgufFamily {
  std::string_view family;        // model.family
  std::string_view architecture;  // general.architecture; the first row with it is its usual one
  std::string_view norm_eps = "attention.layer_norm_rms_epsilon";
  GgufHead head = GgufHead::kEither;
  bool turns_pairs = false;
  bool any_biases = false;        // of attention and the MLP; else the family's usual ones only
  bool tells_rope_size = false;   // as llama.cpp's converter does
  bool takes_rope_freqs = false;  // llama3's rope_freqs.weight
  bool fills_hidden = false;      // the heads together are as wide as the stream
};

// In the order of families().
std::span<const GgufFamily> gguf_families();
const GgufFamily* find_gguf_family(std::string_view family);  // nullptr: none
std::string gguf_families_in_words();                         // "llama, mistral or gpt2"

struct GgufPlace {
  std::string name;  // "blk.0.attn_q.weight"
  GgufForm form;
};

// Of a tensor of the family's architecture, which has that many sizes.
GgufPlace gguf_place(const TensorSpec& ours, const GgufFamily& family);

// The sizes of the tensor as the file has them.
std::vector<uint64_t> gguf_shape(const TensorSpec& ours, GgufForm form);

}  // namespace gxp
