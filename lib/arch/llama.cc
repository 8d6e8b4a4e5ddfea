#include "lib/arch/llama.h"

#include <fmt/format.h>

namespace gxp::llama {
namespace {

UnitSpec make_embedding(const Sizes& s) {
  UnitSpec unit{.name = "embedding", .kind = UnitKind::kEmbedding};
  unit.tensors = {{"model.embed_tokens.weight", {s.vocabulary, s.hidden}, Initial::kNormal}};
  return unit;
}

UnitSpec make_block(int layer, const Sizes& s, DType compute) {
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
  unit.output_parameters = unit.tensors[kDownWeight].count();
  unit.forward_scratch = {operand("normed", c), operand("activated", m)};
  unit.recompute_scratch = {operand("normed", c)};
  unit.backward_scratch = {operand("normed", c),          operand("hidden_gradient", m),
                           operand("query_gradient", q),  operand("key_gradient", kv),
                           operand("value_gradient", kv), operand("attention_gradient", q),
                           operand("branch_gradient", c), {"row_sums", s.heads}};
  return unit;
}

UnitSpec make_head(const Sizes& s, bool tied, DType compute) {
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

}  // namespace

Sizes::Sizes(const ModelConfig& config)
    : vocabulary(size_t(config.vocab_size)),
      hidden(size_t(config.hidden)),
      heads(size_t(config.heads)),
      kv_heads(size_t(config.kv_head_count())),
      head_size(size_t(config.channels_per_head())),
      mlp_hidden(size_t(config.mlp_width())) {}

Architecture make_llama(const ModelConfig& config, DType compute) {
  const Sizes sizes(config);
  Architecture arch{
      .config = config, .compute = compute, .attention_channels = sizes.query_channels()};
  arch.units.push_back(make_embedding(sizes));
  // A tied table is multiplied once, as the head; one of its own is only looked up.
  if (!config.tied_head) arch.looked_up = arch.units[0].parameter_count();
  for (int layer = 0; layer < config.layers; ++layer)
    arch.units.push_back(make_block(layer, sizes, compute));
  arch.units.push_back(make_head(sizes, config.tied_head, compute));
  return arch;
}

}  // namespace gxp::llama
