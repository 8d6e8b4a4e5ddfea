#include "lib/arch/gpt2.h"

#include <fmt/format.h>

namespace gxp::gpt2 {
namespace {

UnitSpec make_embedding(size_t vocabulary, size_t context, size_t c) {
  UnitSpec unit{.name = "embedding", .kind = UnitKind::kEmbedding};
  unit.tensors = {{"transformer.wte.weight", {vocabulary, c}, Initial::kNormal},
                  {"transformer.wpe.weight", {context, c}, Initial::kNormal}};
  return unit;
}

UnitSpec make_block(int layer, size_t c, size_t heads, DType compute) {
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
  unit.output_parameters =
      unit.tensors[kMlpProjectionWeight].count() + unit.tensors[kMlpProjectionBias].count();
  unit.forward_scratch = {operand("normed", c), operand("activated", 4 * c)};
  unit.recompute_scratch = {operand("normed", c)};
  unit.backward_scratch = {operand("normed", c),
                           operand("hidden_gradient", 4 * c),
                           operand("qkv_gradient", 3 * c),
                           operand("branch_gradient", c),
                           {"row_sums", heads}};
  return unit;
}

UnitSpec make_head(size_t vocabulary, size_t c, DType compute) {
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

}  // namespace

Architecture make_gpt2(const ModelConfig& config, DType compute) {
  const auto c = static_cast<size_t>(config.hidden);
  const auto vocabulary = static_cast<size_t>(config.vocab_size);
  const auto context = static_cast<size_t>(config.context);
  Architecture arch{.config = config,
                    .compute = compute,
                    .inputs_first = true,
                    .looked_up = context * c,
                    .attention_channels = c};
  arch.units.push_back(make_embedding(vocabulary, context, c));
  for (int layer = 0; layer < config.layers; ++layer) {
    arch.units.push_back(make_block(layer, c, static_cast<size_t>(config.heads), compute));
  }
  arch.units.push_back(make_head(vocabulary, c, compute));
  return arch;
}

}  // namespace gxp::gpt2
