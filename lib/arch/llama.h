// Llama (Touvron et al., arXiv:2302.13971 and 2307.09288): RMSNorm, rotary positions in the
// half-split form, SwiGLU, grouped-query attention, no biases; the head has a matrix of its own or
// borrows the token table. Tensor names and layouts are Hugging Face's LlamaForCausalLM;
// projections are stored (out, in).
#pragma once

#include <fmt/format.h>

#include "lib/arch/family.h"

namespace gxp::llama {

// Letters: C hidden, H heads, G kv_heads, D head size, M mlp_hidden, V vocabulary.
struct Sizes {
  explicit Sizes(const ModelConfig& config)
      : vocabulary(size_t(config.vocab_size)),
        hidden(size_t(config.hidden)),
        heads(size_t(config.heads)),
        kv_heads(size_t(config.kv_head_count())),
        head_size(size_t(config.channels_per_head())),
        mlp_hidden(size_t(config.mlp_width())) {}
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

// Indices into UnitSpec::saved. kQuery and kKey hold what positions have turned already. The last
// three are stored if Architecture::kept says so; otherwise backward recomputes them in one pass
// each.
enum BlockSaved {
  kRstd1,
  kQuery,
  kKey,
  kValue,
  kAttention,
  kLse,
  kResidual,
  kRstd2,
  kGate,
  kUp,
  kNormed1,
  kNormed2,
  kKeptActivated,
};

// Indices into the scratch lists. If the norms' outputs are not kept, one of them is the last in
// each block's list.
enum BlockForwardScratch { kActivated };  // unless it is kept
enum BlockBackwardScratch {
  kHiddenGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kAttentionGradient,
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
  kOfActivatedAgain,
  kOfGateGradient,
  kOfUpGradient,
  kOfAttentionGradient,  // of the stream, for attention's last layer
  kOfQueryGradient,
  kOfKeyGradient,
  kOfValueGradient,
  kOperands
};
enum HeadForwardScratch { kHeadNormed, kHeadRstd, kHeadLogits };
enum HeadBackwardScratch { kLossNormed, kLossRstd, kLossLogits, kNormedGradient };

inline UnitSpec make_embedding(const Sizes& s) {
  UnitSpec unit{.name = "embedding", .kind = UnitKind::kEmbedding};
  unit.tensors = {{"model.embed_tokens.weight", {s.vocabulary, s.hidden}, Initial::kNormal}};
  return unit;
}

inline UnitSpec make_block(int layer, const Sizes& s, DType compute, KeptOutputs kept) {
  UnitSpec unit{.name = fmt::format("layers.{}", layer), .kind = UnitKind::kBlock};
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const auto add = [&](const char* name, std::vector<size_t> shape, Initial initial) {
    unit.tensors.push_back({prefix + name, std::move(shape), initial});
  };
  const size_t c = s.hidden;
  const size_t q = s.query_channels();
  const size_t kv = s.key_channels();
  const size_t m = s.mlp_hidden;
  add("input_layernorm.weight", {c}, Initial::kOnes);
  add("self_attn.q_proj.weight", {q, c}, Initial::kNormal);
  add("self_attn.k_proj.weight", {kv, c}, Initial::kNormal);
  add("self_attn.v_proj.weight", {kv, c}, Initial::kNormal);
  add("self_attn.o_proj.weight", {c, q}, Initial::kResidualNormal);
  add("post_attention_layernorm.weight", {c}, Initial::kOnes);
  add("mlp.gate_proj.weight", {m, c}, Initial::kNormal);
  add("mlp.up_proj.weight", {m, c}, Initial::kNormal);
  add("mlp.down_proj.weight", {c, m}, Initial::kResidualNormal);
  const auto operand = [=](const char* name, size_t per_token) {
    return ActivationSpec{.name = name, .per_token = per_token, .dtype = compute};
  };
  unit.saved = {{"rstd_1", 1},        operand("query", q),     operand("key", kv),
                operand("value", kv), operand("attention", q), {"lse", s.heads},
                {"residual", c},      {"rstd_2", 1},           operand("gate", m),
                operand("up", m)};
  for (const BlockSaved costly : {kAttention, kLse}) unit.saved[costly].costly = true;
  unit.tensors[kDownWeight].input = ProductInput::kGated;
  unit.operands = kOperands;
  unit.output_parameters = unit.tensors[kDownWeight].count();
  unit.backward_scratch = {operand("hidden_gradient", m),
                           operand("query_gradient", q),
                           operand("key_gradient", kv),
                           operand("value_gradient", kv),
                           operand("attention_gradient", q),
                           operand("branch_gradient", c),
                           {"row_sums", s.heads}};
  if (compute != DType::kF32) unit.backward_scratch.push_back(operand("rounded_gradient", c));
  place_outputs(unit, kept, operand("normed", c), operand("activated", m));
  return unit;
}

inline UnitSpec make_head(const Sizes& s, bool tied, DType compute) {
  UnitSpec unit{.name = "head", .kind = UnitKind::kHead};
  unit.tensors = {{"model.norm.weight", {s.hidden}, Initial::kOnes}};
  if (tied)
    unit.borrows_from = 0;
  else
    unit.tensors.push_back({"lm_head.weight", {s.vocabulary, s.hidden}, Initial::kNormal});
  const ActivationSpec normed = {.name = "normed", .per_token = s.hidden, .dtype = compute};
  unit.forward_scratch = {normed, {"rstd", 1}, logits_in_pieces(s.vocabulary, compute)};
  unit.backward_scratch = unit.forward_scratch;
  unit.backward_scratch.push_back(
      {.name = "normed_gradient", .per_token = s.hidden, .dtype = compute});
  return unit;
}

inline Architecture make_llama(const ModelConfig& config, DType compute, KeptOutputs kept) {
  const Sizes sizes(config);
  Architecture arch{.config = config,
                    .compute = compute,
                    .kept = kept,
                    .attention_channels = sizes.query_channels()};
  arch.units.push_back(make_embedding(sizes));
  // A tied table is multiplied once, as the head; one of its own is only looked up.
  if (!config.tied_head) arch.looked_up = arch.units[0].parameter_count();
  for (int layer = 0; layer < config.layers; ++layer)
    arch.units.push_back(make_block(layer, sizes, compute, kept));
  arch.units.push_back(make_head(sizes, config.tied_head, compute));
  return arch;
}

inline int64_t mlp_width(const ModelConfig& model) {
  if (model.mlp_hidden > 0) return model.mlp_hidden;
  return (int64_t{8} * model.hidden + 3 * 256 - 1) / (3 * 256) * 256;
}

// RoPE turns pairs of channels; and products of sizes stay within 64 bits (model_config.h).
inline std::string head_size_problem(const ModelConfig& model) {
  constexpr int64_t kMostChannels = 1 << 20;
  if (int64_t{model.heads} * model.head_size > kMostChannels)
    return fmt::format("times model.heads ({}) must be at most {}, is {}", model.heads,
                       kMostChannels, int64_t{model.heads} * model.head_size);
  if (model.head_size == 0 && model.hidden % model.heads != 0) return "";  // has a rule of its own
  if (model.channels_per_head() % 2 == 0) return "";
  return fmt::format("must be even for rotary positions, is {}{}", model.channels_per_head(),
                     model.head_size == 0 ? " (model.hidden / model.heads)" : "");
}

inline HuggingFaceFamily huggingface() {
  using Fact = HuggingFaceFamily::Fact;
  return {.architecture = "LlamaForCausalLM",
          .prefix = "model.",
          .sizes = {{"vocab_size", "model.vocab_size", &ModelConfig::vocab_size},
                    {"max_position_embeddings", "model.context", &ModelConfig::context},
                    {"hidden_size", "model.hidden", &ModelConfig::hidden},
                    {"num_hidden_layers", "model.layers", &ModelConfig::layers},
                    {"num_attention_heads", "model.heads", &ModelConfig::heads},
                    {"num_key_value_heads", "model.kv_heads", &ModelConfig::kv_heads, true},
                    {"head_dim", "model.head_size", &ModelConfig::head_size, true},
                    {"intermediate_size", "model.mlp_hidden", &ModelConfig::mlp_hidden}},
          .norm_eps = "rms_norm_eps",
          .norm_eps_if_absent = 1e-6,
          .facts = {{"hidden_act", "silu", Fact::Use::kBoth, {"swish"}},
                    {"mlp_bias", false},
                    {"attention_bias", false},
                    {"attention_dropout", 0.0, Fact::Use::kWritten}},
          .kin = {{"mistral", "MistralForCausalLM", 4096}}};
}

inline Family family() {
  return {.name = "llama",
          .block = BlockKind::kLlama,
          .make = make_llama,
          .mlp_width = mlp_width,
          .keys = {"kv_heads", "head_size", "mlp_hidden", "rope_theta", "tied_head"},
          .rules = {{"head_size", "heads", head_size_problem}},
          .huggingface = huggingface()};
}

}  // namespace gxp::llama
