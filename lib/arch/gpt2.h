// GPT-2 (Radford et al., 2019): learned positions, pre-norm blocks, LayerNorm, GELU (tanh form),
// tied head. Tensor names and layouts are Hugging Face's GPT2LMHeadModel; projections are stored
// (in, out).
#pragma once

#include <fmt/format.h>

#include "lib/arch/family.h"

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

// Indices into UnitSpec::saved. The last three, 6 * C elements per token, are stored if
// Architecture::kept says so; otherwise backward recomputes them from the inputs in one pass each.
enum BlockSaved {
  kMean1,
  kRstd1,
  kQkv,
  kAttention,
  kLse,
  kResidual,
  kMean2,
  kRstd2,
  kFc,
  kNormed1,
  kNormed2,
  kKeptActivated,
};

// Indices into the scratch lists. If the norms' outputs are not kept, one of them is the last in
// each block's list.
enum BlockForwardScratch { kActivated };  // unless it is kept
enum BlockBackwardScratch {
  kHiddenGradient,
  kQkvGradient,
  kBranchGradient,
  kRowSums,
  kRoundedGradient  // of the stream, for products; not in f32
};
// Indices of UnitSpec::operands.
enum BlockOperand {
  kOfNormed1,
  kOfAttention,
  kOfNormed2,
  kOfActivated,
  kOfMlpGradient,  // of the stream, for the MLP's last layer
  kOfHiddenGradient,
  kOfActivatedAgain,
  kOfAttentionGradient,  // of the stream, for attention's last layer
  kOfQkvGradient,
  kOperands
};
enum HeadForwardScratch { kHeadNormed, kHeadMean, kHeadRstd, kHeadLogits };
enum HeadBackwardScratch { kLossNormed, kLossMean, kLossRstd, kLossLogits, kNormedGradient };

inline UnitSpec make_embedding(size_t vocabulary, size_t context, size_t c) {
  UnitSpec unit{.name = "embedding", .kind = UnitKind::kEmbedding};
  unit.tensors = {{"transformer.wte.weight", {vocabulary, c}, Initial::kNormal},
                  {"transformer.wpe.weight", {context, c}, Initial::kNormal}};
  return unit;
}

inline UnitSpec make_block(int layer, size_t c, size_t heads, DType compute, KeptOutputs kept) {
  UnitSpec unit{.name = fmt::format("h.{}", layer), .kind = UnitKind::kBlock};
  const std::string prefix = fmt::format("transformer.h.{}.", layer);
  const auto add = [&](const char* name, std::vector<size_t> shape, Initial initial) {
    unit.tensors.push_back({prefix + name, std::move(shape), initial});
  };
  add("ln_1.weight", {c}, Initial::kOnes);
  add("ln_1.bias", {c}, Initial::kZeros);
  add("attn.c_attn.weight", {c, 3 * c}, Initial::kNormal);
  add("attn.c_attn.bias", {3 * c}, Initial::kZeros);
  add("attn.c_proj.weight", {c, c}, Initial::kResidualNormal);
  add("attn.c_proj.bias", {c}, Initial::kZeros);
  add("ln_2.weight", {c}, Initial::kOnes);
  add("ln_2.bias", {c}, Initial::kZeros);
  add("mlp.c_fc.weight", {c, 4 * c}, Initial::kNormal);
  add("mlp.c_fc.bias", {4 * c}, Initial::kZeros);
  add("mlp.c_proj.weight", {4 * c, c}, Initial::kResidualNormal);
  add("mlp.c_proj.bias", {c}, Initial::kZeros);
  const auto operand = [=](const char* name, size_t per_token) {
    return ActivationSpec{.name = name, .per_token = per_token, .dtype = compute};
  };
  unit.saved = {{"mean_1", 1},           {"rstd_1", 1},  operand("qkv", 3 * c),
                operand("attention", c), {"lse", heads}, {"residual", c},
                {"mean_2", 1},           {"rstd_2", 1},  operand("fc", 4 * c)};
  for (const BlockSaved costly : {kAttention, kLse}) unit.saved[costly].costly = true;
  unit.tensors[kMlpProjectionWeight].input = ProductInput::kGelu;
  unit.operands = kOperands;
  unit.output_parameters =
      unit.tensors[kMlpProjectionWeight].count() + unit.tensors[kMlpProjectionBias].count();
  unit.backward_scratch = {operand("hidden_gradient", 4 * c),
                           operand("qkv_gradient", 3 * c),
                           operand("branch_gradient", c),
                           {"row_sums", heads}};
  if (compute != DType::kF32) unit.backward_scratch.push_back(operand("rounded_gradient", c));
  place_outputs(unit, kept, operand("normed", c), operand("activated", 4 * c));
  return unit;
}

inline UnitSpec make_head(size_t vocabulary, size_t c, DType compute) {
  UnitSpec unit{.name = "head", .kind = UnitKind::kHead};
  unit.tensors = {{"transformer.ln_f.weight", {c}, Initial::kOnes},
                  {"transformer.ln_f.bias", {c}, Initial::kZeros}};
  unit.borrows_from = 0;
  const ActivationSpec normed = {.name = "normed", .per_token = c, .dtype = compute};
  unit.forward_scratch = {normed, {"mean", 1}, {"rstd", 1}, logits_in_pieces(vocabulary, compute)};
  unit.backward_scratch = unit.forward_scratch;
  unit.backward_scratch.push_back({.name = "normed_gradient", .per_token = c, .dtype = compute});
  return unit;
}

inline Architecture make_gpt2(const ModelConfig& config, DType compute, KeptOutputs kept) {
  const auto c = static_cast<size_t>(config.hidden);
  const auto vocabulary = static_cast<size_t>(config.vocab_size);
  const auto context = static_cast<size_t>(config.context);
  Architecture arch{.config = config,
                    .compute = compute,
                    .kept = kept,
                    .inputs_first = true,
                    .looked_up = context * c,
                    .attention_channels = c};
  arch.units.push_back(make_embedding(vocabulary, context, c));
  for (int layer = 0; layer < config.layers; ++layer) {
    arch.units.push_back(make_block(layer, c, static_cast<size_t>(config.heads), compute, kept));
  }
  arch.units.push_back(make_head(vocabulary, c, compute));
  return arch;
}

inline HuggingFaceFamily huggingface() {
  using Fact = HuggingFaceFamily::Fact;
  return {
      .architecture = "GPT2LMHeadModel",
      .prefix = "transformer.",
      .sizes = {{"vocab_size", "model.vocab_size", &ModelConfig::vocab_size},
                {"n_positions", "model.context", &ModelConfig::context},
                {"n_embd", "model.hidden", &ModelConfig::hidden},
                {"n_layer", "model.layers", &ModelConfig::layers},
                {"n_head", "model.heads", &ModelConfig::heads}},
      .mlp_width = "n_inner",
      .norm_eps = "layer_norm_epsilon",
      .norm_eps_if_absent = 1e-5,
      .facts = {
          {"activation_function", "gelu_new", Fact::Use::kBoth, {"gelu_pytorch_tanh", "gelu_fast"}},
          {"scale_attn_weights", true, Fact::Use::kRead},
          {"scale_attn_by_inverse_layer_idx", false, Fact::Use::kRead},
          {"resid_pdrop", 0.0, Fact::Use::kWritten},
          {"embd_pdrop", 0.0, Fact::Use::kWritten},
          {"attn_pdrop", 0.0, Fact::Use::kWritten},
          {"tie_word_embeddings", true}}};
}

inline Family family() {
  return {.name = "gpt2",
          .block = BlockKind::kGpt,
          .make = make_gpt2,
          .mlp_width = [](const ModelConfig& model) { return int64_t{4} * model.hidden; },
          .huggingface = huggingface()};
}

}  // namespace gxp::gpt2
