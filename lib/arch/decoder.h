// The decoder that all model families are: what distinguishes one from another is data. A family
// gives a DecoderKind and the names of its tensors (family.h); with the settings [model] they make
// a Decoder, which says where everything of a unit is, and the unit table (architecture.h). The
// arithmetic is lib/model's. Pure.
//
// A block, for its input x:
//   y = x + s * after_1(attention(before_1(x)));  z = y + s * after_2(mlp(before_2(y)))
// with norms that may be absent, or, with parallel residuals, z = y + s * mlp(before_2(x)).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/decoder/activation.h"
#include "lib/base/decoder/rotary.h"

namespace gxp {

enum class NormKind { kLayer, kRms };
enum class QueryKeyNorm { kNone, kPerHead, kAllHeads };
// How the projections to queries, keys and values are stored.
enum class QkvTensors {
  kSeparate,
  kBlocks,   // one matrix, one product: all queries, all keys, all values (GPT-2)
  kPerHead,  // one matrix, one product: of each head its query, key and value (GPT-NeoX)
  kParts,    // one matrix, of which each part has a product of its own (Phi-3)
};

// What a family fixes.
struct DecoderKind {
  NormKind norm = NormKind::kRms;
  bool norm_plus_one = false;  // of RMS norms: the weight is stored less 1 (Gemma)
  bool norm_before = true;     // of attention and MLP
  bool norm_after = false;     // of attention and MLP, before their outputs are added
  bool one_norm = false;       // attention and MLP read the same norm's output
  bool parallel = false;       // also by model.parallel_residual
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;  // kPerHead also by model.query_key_norm
  QkvTensors qkv = QkvTensors::kSeparate;
  bool output_bias = true;      // has one where queries, keys and values have
  bool gated = true;            // the MLP
  bool fused_gate_up = false;   // both in one matrix
  bool inputs_first = false;    // matrices are (inputs, outputs); else as torch.nn.Linear's
  bool position_table = false;  // else rotary positions
  bool local_rotary = false;    // layers with a window have angles of their own
  bool head_bias = false;
  bool embedding_times_root = false;  // the embedding's factor is sqrt(hidden), too
};

// Names of tensors, without ".weight" and ".bias". Of a block: behind `block`, whose {} is the
// layer's number. The default is Llama's.
struct DecoderNames {
  std::string_view unit = "layers.{}";
  std::string_view block = "model.layers.{}.";
  std::string_view token_table = "model.embed_tokens";
  std::string_view position_table = {};
  std::string_view before_1 = "input_layernorm";
  std::string_view qkv = {};
  std::string_view query = "self_attn.q_proj";
  std::string_view key = "self_attn.k_proj";
  std::string_view value = "self_attn.v_proj";
  std::string_view query_norm = "self_attn.q_norm";
  std::string_view key_norm = "self_attn.k_norm";
  std::string_view output = "self_attn.o_proj";
  std::string_view after_1 = {};
  std::string_view before_2 = "post_attention_layernorm";
  std::string_view gate_up = {};
  std::string_view gate = "mlp.gate_proj";
  std::string_view up = "mlp.up_proj";  // of plain MLPs: the first matrix
  std::string_view down = "mlp.down_proj";
  std::string_view after_2 = {};
  std::string_view final_norm = "model.norm";
  std::string_view head = "lm_head";
};

// For each enumerator of E, which ends with kCount, an index in a list; -1: none.
template <class E>
class Places {
 public:
  Places() { at_.fill(-1); }
  void set(E what, size_t index) { at_[size_t(what)] = int(index); }
  [[nodiscard]] bool has(E what) const { return at_[size_t(what)] >= 0; }
  [[nodiscard]] size_t operator[](E what) const { return size_t(at_[size_t(what)]); }

 private:
  std::array<int, size_t(E::kCount)> at_;
};

// The matrices of a block, by their products; kUp: the first of a plain MLP.
enum class Matrix { kQuery, kKey, kValue, kQkv, kOutput, kGate, kUp, kDown, kCount };
enum class BlockNorm { kBefore1, kQuery, kKey, kAfter1, kBefore2, kAfter2, kCount };

// Indices into UnitSpec::saved of a block. kQuery and kKey hold what norms and positions have
// changed already, kRaw... what the product gave. kNormed1, kNormed2 and kActivated are stored if
// Architecture::kept says so; otherwise backward recomputes them in one pass each.
enum class BlockSaved {
  kMean1,
  kRstd1,
  kQkv,
  kRawQuery,
  kRawKey,
  kQueryMean,
  kQueryRstd,
  kKeyMean,
  kKeyRstd,
  kQuery,
  kKey,
  kValue,
  kAttention,
  kLse,
  kAttentionOut,  // before the norm after it
  kAttentionOutRstd,
  kResidual,
  kMean2,
  kRstd2,
  kGate,
  kUp,
  kMlpOut,
  kMlpOutRstd,
  kNormed1,
  kNormed2,
  kActivated,
  kCount
};

// Indices into the scratch lists of a block. If the norms' outputs are not kept, one of them is the
// last in each list.
enum class BlockScratch {
  kAdapted,    // the product of an adapter's first matrix; first in each list
  kDropped,    // with dropout, an adapter's input; second in each list
  kBranch,     // forward and recomputation: an output of attention or the MLP, f32
  kActivated,  // the same, unless it is kept
  kAdaptedGradient,
  kHiddenGradient,
  kQkvGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kAttentionGradient,
  kRawQueryGradient,
  kRawKeyGradient,
  kBranchGradient,
  kRowSums,
  kOutputGradient,   // of an output before the norm after it, f32
  kRoundedGradient,  // of the stream, for products
  kCount
};

// Indices of UnitSpec::operands.
enum class BlockOperand {
  kNormed1,
  kAttention,
  kNormed2,
  kActivated,
  kMlpGradient,  // of the stream, for the MLP's last layer
  kHiddenGradient,
  kActivatedAgain,
  kGateGradient,
  kUpGradient,
  kAttentionGradient,  // of the stream, for attention's last layer
  kQkvGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kCount
};

enum class HeadScratch { kNormed, kMean, kRstd, kLogits, kNormedGradient, kCapped, kCount };

// A low-rank adapter of a stored matrix: adds factor * (x A^T) B^T to its product with x. The
// indices of its tensors, A (rank, inputs) and B (outputs, rank).
struct Adapter {
  int a, b;
};

// A matrix: rows `first` to `first + rows` of a tensor of its unit (of (inputs, outputs) matrices
// all), its bias, and where its codes of 8 bits begin in the unit's (UnitTensors::codes), in bytes.
struct MatrixPlace {
  int tensor = -1;  // -1: the model has none
  int bias = -1;
  size_t first = 0, rows = 0;
  size_t codes = 0;
  int adapter = -1;                      // of its tensor; -1: none
  bool is_first = true, is_last = true;  // of the parts of its tensor
};

// What differs between layers.
struct LayerKind {
  bool rotates = true;
  bool is_local = false;  // by Decoder::local_rotary
  size_t window = 0;      // 0: none
  float scale = 0;        // of scores; 0: 1 / sqrt(head size)
};

struct Decoder {
  DecoderKind kind;
  size_t vocabulary = 0, context = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, mlp = 0;
  Activation activation = Activation::kSilu;
  bool tied_head = false;
  float eps = 0, score_cap = 0, logit_cap = 0;
  double embedding_scale = 1, residual_scale = 1, logit_divisor = 1;
  int pad_token = -1;
  Rotary rotary = {}, local_rotary = {};
  std::vector<LayerKind> layers = {};

  // Of a block.
  std::array<MatrixPlace, size_t(Matrix::kCount)> matrices = {};
  std::vector<Adapter> adapters = {};
  size_t adapter_rank = 0;
  float adapter_factor = 1;
  float adapter_dropout = 0;
  Places<BlockNorm> norms = {};  // the weight; a layer norm's bias is the next tensor
  Places<BlockSaved> saved = {};
  Places<BlockScratch> forward_scratch = {}, recompute_scratch = {}, backward_scratch = {};
  Places<BlockOperand> operands = {};
  // Of the head.
  int final_norm = 0;
  int head_weight = -1;  // -1: tied
  int head_bias = -1;
  Places<HeadScratch> head_scratch = {};

  [[nodiscard]] const MatrixPlace& matrix(Matrix which) const { return matrices[size_t(which)]; }
  [[nodiscard]] size_t query_channels() const { return heads * head_size; }
  [[nodiscard]] size_t key_channels() const { return kv_heads * head_size; }  // and of values
  // Of a position's cached keys, or of its cached queries, keys and values in one array.
  [[nodiscard]] size_t cached_channels() const {
    return has_one_qkv() ? query_channels() + 2 * key_channels() : key_channels();
  }
  [[nodiscard]] bool is_fused_gelu() const {  // Ops::linear_gelu
    return !kind.gated && kind.inputs_first && activation == Activation::kGeluTanh &&
           matrix(Matrix::kUp).adapter < 0 && matrix(Matrix::kDown).adapter < 0;
  }
  // Queries, keys and values are in one array.
  [[nodiscard]] bool has_one_qkv() const {
    return kind.qkv == QkvTensors::kBlocks || kind.qkv == QkvTensors::kPerHead;
  }
  // An output of attention or the MLP is added to the stream by its product.
  [[nodiscard]] bool adds_directly() const { return !kind.norm_after && residual_scale == 1; }
  // The gradient of such an output is that of the stream when its backward begins.
  [[nodiscard]] bool differentiates_directly() const { return adds_directly() && !kind.parallel; }
};

}  // namespace gxp
