#include "lib/arch/published_models.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text/near_match.h"

namespace gxp {
namespace {

constexpr PublishedModel gpt(std::string_view name, uint64_t layers, uint64_t hidden,
                             uint64_t heads, uint64_t positions, std::string_view source,
                             uint64_t vocabulary = 50257) {
  return {.name = name,
          .kind = BlockKind::kGpt,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .key_value_heads = heads,
          .head_size = hidden / heads,
          .mlp = 4 * hidden,
          .vocabulary = vocabulary,
          .positions = positions,
          .tied_head = true,
          .qkv_bias = true,
          .source = source};
}

constexpr std::string_view kGpt2 = "Radford et al. 2019, table 2";
constexpr std::string_view kGpt3 = "Brown et al., arXiv:2005.14165, table 2.1";
constexpr std::string_view kLlama2 = "Touvron et al., arXiv:2307.09288; config.json";
constexpr std::string_view kLlama3 = "Grattafiori et al., arXiv:2407.21783, table 3; config.json";
constexpr std::string_view kMistral = "Jiang et al., arXiv:2310.06825, table 1";
constexpr std::string_view kQwen = "Qwen2.5, arXiv:2412.15115, table 1; config.json";
constexpr std::string_view kQwen3 = "Qwen3, arXiv:2505.09388, table 1; config.json";
constexpr std::string_view kGemma = "Gemma, arXiv:2403.08295, table 1";
constexpr std::string_view kMegatron = "Korthikanti et al., arXiv:2205.05198, table 3";
constexpr std::string_view kMpt = "mosaicml/llm-foundry, scripts/train/yamls/pretrain";
constexpr auto kLlama = BlockKind::kLlama;

constexpr PublishedModel qwen3(std::string_view name, uint64_t layers, uint64_t hidden,
                               uint64_t heads, uint64_t mlp, bool tied_head) {
  return {.name = name,
          .kind = BlockKind::kLlama,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .key_value_heads = 8,
          .head_size = 128,
          .mlp = mlp,
          .vocabulary = 151936,
          .positions = 40960,
          .tied_head = tied_head,
          .qkv_bias = false,
          .source = kQwen3,
          .query_key_norm = true};
}

// GPT-3: table 2.1 of the paper misprints two rows. XL's 24 heads of 128 do not give a hidden size
// of 2048, which 16 do; and only 5120 gives the 12,850 M parameters of table D.1 for 13B, not 5140.
// Columns of the rest: layers, hidden, heads, key-value heads, head size, MLP, vocabulary,
// positions, tied head, bias of q, k and v.
// clang-format off
constexpr PublishedModel kModels[] = {
    gpt("gpt2", 12, 768, 12, 1024, kGpt2),
    gpt("gpt2-medium", 24, 1024, 16, 1024, kGpt2),
    gpt("gpt2-large", 36, 1280, 20, 1024, kGpt2),
    gpt("gpt2-xl", 48, 1600, 25, 1024, kGpt2),
    gpt("gpt3-small", 12, 768, 12, 2048, kGpt3),
    gpt("gpt3-medium", 24, 1024, 16, 2048, kGpt3),
    gpt("gpt3-large", 24, 1536, 16, 2048, kGpt3),
    gpt("gpt3-xl", 24, 2048, 16, 2048, kGpt3),
    gpt("gpt3-2.7b", 32, 2560, 32, 2048, kGpt3),
    gpt("gpt3-6.7b", 32, 4096, 32, 2048, kGpt3),
    gpt("gpt3-13b", 40, 5120, 40, 2048, kGpt3),
    gpt("gpt3-175b", 96, 12288, 96, 2048, kGpt3),
    gpt("megatron-22b", 48, 6144, 64, 2048, kMegatron, 51200),
    gpt("megatron-530b", 105, 20480, 128, 2048, kMegatron, 51200),
    gpt("megatron-1t", 128, 25600, 160, 2048, kMegatron, 51200),
    gpt("mpt-125m", 12, 768, 12, 2048, kMpt, 50368),
    gpt("mpt-350m", 24, 1024, 16, 2048, kMpt, 50368),
    gpt("mpt-760m", 24, 1536, 12, 2048, kMpt, 50368),
    gpt("mpt-1b", 24, 2048, 16, 2048, kMpt, 50368),
    gpt("mpt-3b", 32, 2560, 20, 2048, kMpt, 50368),
    gpt("mpt-7b", 32, 4096, 32, 2048, kMpt, 50368),
    gpt("mpt-13b", 40, 5120, 40, 2048, kMpt, 50368),
    gpt("mpt-30b", 48, 7168, 56, 2048, kMpt, 50368),
    gpt("mpt-70b", 80, 8192, 64, 2048, kMpt, 50368),
    {"llama2-7b", kLlama, 32, 4096, 32, 32, 128, 11008, 32000, 4096, false, false, kLlama2},
    {"llama2-13b", kLlama, 40, 5120, 40, 40, 128, 13824, 32000, 4096, false, false, kLlama2},
    {"llama2-70b", kLlama, 80, 8192, 64, 8, 128, 28672, 32000, 4096, false, false, kLlama2},
    {"llama3-8b", kLlama, 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, false, kLlama3},
    {"llama3-70b", kLlama, 80, 8192, 64, 8, 128, 28672, 128256, 8192, false, false, kLlama3},
    {"llama3.1-405b", kLlama, 126, 16384, 128, 8, 128, 53248, 128256, 131072, false, false,
     kLlama3},
    {"llama3.2-1b", kLlama, 16, 2048, 32, 8, 64, 8192, 128256, 131072, true, false, "config.json"},
    {"llama3.2-3b", kLlama, 28, 3072, 24, 8, 128, 8192, 128256, 131072, true, false, "config.json"},
    {"mistral-7b", kLlama, 32, 4096, 32, 8, 128, 14336, 32000, 8192, false, false, kMistral},
    {"qwen2.5-0.5b", kLlama, 24, 896, 14, 2, 64, 4864, 151936, 32768, true, true, kQwen},
    {"qwen2.5-1.5b", kLlama, 28, 1536, 12, 2, 128, 8960, 151936, 32768, true, true, kQwen},
    {"qwen2.5-3b", kLlama, 36, 2048, 16, 2, 128, 11008, 151936, 32768, true, true, kQwen},
    {"qwen2.5-7b", kLlama, 28, 3584, 28, 4, 128, 18944, 152064, 131072, false, true, kQwen},
    {"qwen2.5-14b", kLlama, 48, 5120, 40, 8, 128, 13824, 152064, 131072, false, true, kQwen},
    {"qwen2.5-32b", kLlama, 64, 5120, 40, 8, 128, 27648, 152064, 131072, false, true, kQwen},
    {"qwen2.5-72b", kLlama, 80, 8192, 64, 8, 128, 29568, 152064, 131072, false, true, kQwen},
    qwen3("qwen3-0.6b", 28, 1024, 16, 3072, true),
    qwen3("qwen3-1.7b", 28, 2048, 16, 6144, true),
    qwen3("qwen3-4b", 36, 2560, 32, 9728, true),
    qwen3("qwen3-8b", 36, 4096, 32, 12288, false),
    qwen3("qwen3-14b", 40, 5120, 40, 17408, false),
    qwen3("qwen3-32b", 64, 5120, 64, 25600, false),
    {"gemma-2b", kLlama, 18, 2048, 8, 1, 256, 16384, 256000, 8192, true, false, kGemma},
    {"gemma-7b", kLlama, 28, 3072, 16, 16, 256, 24576, 256000, 8192, true, false, kGemma},
};
// clang-format on

std::vector<TensorShape> gpt_block(const PublishedModel& model) {
  const uint64_t h = model.hidden;
  return {{h}, {h}, {3 * h, h},     {3 * h},     {h, h},         {h},
          {h}, {h}, {model.mlp, h}, {model.mlp}, {h, model.mlp}, {h}};
}

std::vector<TensorShape> llama_block(const PublishedModel& model) {
  const uint64_t h = model.hidden;
  const uint64_t queries = model.heads * model.head_size;
  const uint64_t keys = model.key_value_heads * model.head_size;
  std::vector<TensorShape> shapes = {{queries, h},   {keys, h},      {keys, h},     {h, queries},
                                     {model.mlp, h}, {model.mlp, h}, {h, model.mlp}};
  if (model.qkv_bias) shapes.insert(shapes.end(), {{queries}, {keys}, {keys}});
  if (model.output_bias) shapes.push_back({h});
  if (model.mlp_bias) shapes.insert(shapes.end(), {{model.mlp}, {model.mlp}, {h}});
  if (model.query_key_norm) shapes.insert(shapes.end(), 2, {model.head_size});
  shapes.insert(shapes.end(), model.norms, {h});
  return shapes;
}

std::vector<TensorShape> block_shapes(const PublishedModel& model) {
  if (!model.units.empty()) return model.units[1];
  return model.kind == BlockKind::kGpt ? gpt_block(model) : llama_block(model);
}

uint64_t sum_of(const std::vector<TensorShape>& shapes) {
  uint64_t count = 0;
  for (const TensorShape& shape : shapes) count += count_of(shape);
  return count;
}

// Without a head of labels.
std::vector<std::vector<TensorShape>> plain_units(const PublishedModel& model) {
  if (!model.units.empty()) return model.units;
  const bool gpt = model.kind == BlockKind::kGpt;
  std::vector<std::vector<TensorShape>> units(1, {{model.vocabulary, model.hidden}});
  if (gpt) units[0].push_back({model.positions, model.hidden});
  units.insert(units.end(), model.layers, block_shapes(model));
  units.emplace_back(gpt ? 2 : 1, TensorShape{model.hidden});
  if (model.has_own_head()) units.back().push_back({model.vocabulary, model.hidden});
  return units;
}

}  // namespace

uint64_t count_of(const TensorShape& shape) {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>());
}

std::span<const PublishedModel> published_models() { return kModels; }

const PublishedModel& find_published_model(std::string_view name) {
  std::vector<std::string> names;
  for (const PublishedModel& model : kModels) {
    if (model.name == name) return model;
    names.emplace_back(model.name);
  }
  fail(ErrorKind::kUsage,
       "look up model '{}': no published model has that name{}; use one that --list shows, or "
       "--params with a number",
       name, did_you_mean(name, names));
}

uint64_t block_parameter_count(const PublishedModel& model) { return sum_of(block_shapes(model)); }

uint64_t other_parameter_count(const PublishedModel& model) {
  uint64_t others = parameter_count(model);
  for (const TensorShape& shape : block_shapes(model)) {
    if (shape.size() == 2) others -= model.layers * count_of(shape);
  }
  return others;
}

uint64_t parameter_count(const PublishedModel& model) {
  if (!model.units.empty()) {
    uint64_t count = 0;
    for (const auto& unit : unit_shapes(model)) count += sum_of(unit);
    return count;
  }
  const uint64_t h = model.hidden;
  const uint64_t tables = model.vocabulary * h * (model.has_own_head() ? 2 : 1) +
                          model.labels * (h + (model.label_bias ? 1 : 0));
  const uint64_t others = model.kind == BlockKind::kGpt ? model.positions * h + 2 * h : h;
  return tables + others + model.layers * block_parameter_count(model);
}

std::vector<std::vector<TensorShape>> unit_shapes(const PublishedModel& model) {
  std::vector<std::vector<TensorShape>> units = plain_units(model);
  if (model.labels > 0) units.back().push_back({model.labels, model.hidden});
  if (model.label_bias) units.back().push_back({model.labels});
  return units;
}

uint64_t largest_module(const PublishedModel& model) {
  const uint64_t embedding = model.vocabulary * model.hidden;
  const uint64_t mlp = model.mlp * model.hidden;
  // GPT-2's first MLP layer has a bias as wide as its output; Llama's linears have none.
  return std::max(embedding, model.kind == BlockKind::kGpt ? mlp + model.mlp : mlp);
}

}  // namespace gxp
