// The shapes of published models, by name, and what follows from a shape alone: how many parameters
// there are and which module is the largest. For questions that are asked before a model exists.
//
// One more model is one row in the table. Pure; counts are exact.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gxp {

// As torch.nn.Linear has it: (outputs, inputs).
using TensorShape = std::vector<uint64_t>;

enum class BlockKind {
  // GPT-2 and GPT-3: learned positions, LayerNorm, biases everywhere, MLP of 4 hidden, tied head.
  kGpt,
  // Llama, Mistral, Qwen, Gemma: rotary positions, RMSNorm, gated MLP of three matrices,
  // grouped-query attention.
  kLlama,
};

struct PublishedModel {
  std::string_view name = {};  // "llama3-8b"
  BlockKind kind = BlockKind::kGpt;
  uint64_t layers = 0;
  uint64_t hidden = 0;
  uint64_t heads = 0;
  uint64_t key_value_heads = 0;  // fewer than `heads` under grouped-query attention
  uint64_t head_size = 0;
  uint64_t mlp = 0;         // width of the MLP's middle
  uint64_t vocabulary = 0;  // rows of the embedding
  uint64_t positions = 0;   // context; rows of the learned position table, if there is one
  bool tied_head = true;    // the head is the embedding
  bool qkv_bias = true;
  std::string_view source = {};
  // kLlama only:
  bool output_bias = false;     // of attention's output
  bool mlp_bias = false;        // of all three matrices
  bool query_key_norm = false;  // an RMSNorm of head_size each for queries and keys
  uint64_t norms = 2;           // RMSNorms of `hidden` in a block
  // Hugging Face's classes without a language model's head have one with a row for each label, or
  // none (0). The embedding is then no head.
  bool has_language_head = true;
  uint64_t labels = 0;
  bool label_bias = false;
  // Of a model that comes from a file: its tensors without such labels, by unit, as unit_shapes()
  // gives them; empty: they follow from the members above.
  std::vector<std::vector<TensorShape>> units = {};
  bool position_table = true;  // kGpt only

  // Whether the head is a matrix of its own, (vocabulary, hidden).
  [[nodiscard]] bool has_own_head() const { return has_language_head && !tied_head; }
};

std::span<const PublishedModel> published_models();

// Throws kUsage with a near match if there is none of that name.
const PublishedModel& find_published_model(std::string_view name);

// A tied head counts once.
uint64_t parameter_count(const PublishedModel& model);
uint64_t block_parameter_count(const PublishedModel& model);
// Those that no matrix of a block holds: of embeddings, head, norms and biases.
uint64_t other_parameter_count(const PublishedModel& model);

// By unit in forward order: embedding, blocks, final norm with the head if it is not tied.
uint64_t count_of(const TensorShape& shape);
std::vector<std::vector<TensorShape>> unit_shapes(const PublishedModel& model);

// Parameters of the largest module that has any of its own: an embedding, or one linear layer with
// its bias. DeepSpeed's "largest layer", which is no transformer block.
uint64_t largest_module(const PublishedModel& model);

}  // namespace gxp
