// GPT-2 (Radford et al., 2019): learned positions, pre-norm blocks, LayerNorm, GELU (tanh form),
// tied head. Tensor names and layouts are Hugging Face's GPT2LMHeadModel; projections are stored
// (in, out).
#pragma once

#include "lib/arch/architecture.h"

namespace gxp::gpt2 {

// Indices into UnitSpec::tensors.
enum EmbeddingTensor { kTokenTable, kPositionTable };
enum BlockTensor {
  kNorm1Weight,
  kNorm1Bias,
  kQkvWeight,
  kQkvBias,
  kAttentionProjectionWeight,
  kAttentionProjectionBias,
  kNorm2Weight,
  kNorm2Bias,
  kFcWeight,
  kFcBias,
  kMlpProjectionWeight,
  kMlpProjectionBias,
};
enum HeadTensor { kFinalNormWeight, kFinalNormBias };

// Indices into UnitSpec::saved. The norms' outputs and GELU's are not kept: backward makes them
// again from the inputs in one pass each, which costs less than 6 * C floats per token of memory
// are worth.
enum BlockSaved { kMean1, kRstd1, kQkv, kAttention, kLse, kResidual, kMean2, kRstd2, kFc };

// Indices into the scratch lists.
enum BlockForwardScratch { kNormed, kActivated };  // kNormed also of recompute_scratch
enum BlockBackwardScratch {
  kNormedAgain,
  kHiddenGradient,
  kQkvGradient,
  kBranchGradient,
  kRowSums
};
enum HeadForwardScratch { kHeadNormed, kHeadMean, kHeadRstd, kHeadLogits };
enum HeadBackwardScratch { kLossNormed, kLossMean, kLossRstd, kLossLogits, kNormedGradient };

Architecture make_gpt2(const ModelConfig& config, DType compute);

}  // namespace gxp::gpt2
