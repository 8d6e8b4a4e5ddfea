// Llama (Touvron et al., arXiv:2302.13971 and 2307.09288): RMSNorm, rotary positions in the
// half-split form, SwiGLU, grouped-query attention, no biases; the head has a matrix of its own or
// borrows the token table. Tensor names and layouts are Hugging Face's LlamaForCausalLM;
// projections are stored (out, in).
#pragma once

#include "lib/arch/architecture.h"

namespace gxp::llama {

// Letters: C hidden, H heads, G kv_heads, D head size, M mlp_hidden, V vocabulary.
struct Sizes {
  explicit Sizes(const ModelConfig& config);
  size_t vocabulary, hidden, heads, kv_heads, head_size, mlp_hidden;

  [[nodiscard]] size_t query_channels() const { return heads * head_size; }
  [[nodiscard]] size_t key_channels() const { return kv_heads * head_size; }  // and of values
};

// Indices into UnitSpec::tensors.
enum EmbeddingTensor { kTokenTable };
enum BlockTensor {
  kNorm1Weight,
  kQueryWeight,
  kKeyWeight,
  kValueWeight,
  kOutputWeight,
  kNorm2Weight,
  kGateWeight,
  kUpWeight,
  kDownWeight,
};
enum HeadTensor { kFinalNormWeight, kHeadWeight };  // the second where the head is not tied

// Indices into UnitSpec::saved. kQuery and kKey hold what positions have turned already. The norms'
// outputs and the product of gate and up are not kept: backward makes them again in one pass each.
enum BlockSaved { kRstd1, kQuery, kKey, kValue, kAttention, kLse, kResidual, kRstd2, kGate, kUp };

// Indices into the scratch lists.
enum BlockForwardScratch { kNormed, kActivated };  // kNormed also of recompute_scratch
enum BlockBackwardScratch {
  kNormedAgain,
  kHiddenGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kAttentionGradient,
  kBranchGradient,
  kRowSums
};
enum HeadForwardScratch { kHeadNormed, kHeadRstd, kHeadLogits };
enum HeadBackwardScratch { kLossNormed, kLossRstd, kLossLogits, kNormedGradient };

Architecture make_llama(const ModelConfig& config, DType compute);

}  // namespace gxp::llama
