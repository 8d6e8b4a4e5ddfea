#include "lib/arch/published_models.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/near_match.h"

namespace gxp {
namespace {

constexpr PublishedModel gpt(std::string_view name, uint64_t layers, uint64_t hidden,
                             uint64_t heads, uint64_t positions, std::string_view source) {
  return {.name = name,
          .kind = BlockKind::kGpt,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .key_value_heads = heads,
          .head_size = hidden / heads,
          .mlp = 4 * hidden,
          .vocabulary = 50257,
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
constexpr auto kLlama = BlockKind::kLlama;

// GPT-3: table 2.1 of the paper misprints two rows. XL's 24 heads of 128 do not give a hidden size
// of 2048, which 16 do; and only 5120 gives the 12,850 M parameters of table D.1 for 13B, not 5140.
// Columns of the rest: layers, hidden, heads, key-value heads, head size, MLP, vocabulary,
// positions, tied head, bias of q, k and v.
// clang-format off
constexpr std::array kModels = {
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
    PublishedModel{"llama2-7b", kLlama, 32, 4096, 32, 32, 128, 11008, 32000, 4096, false, false, kLlama2},
    PublishedModel{"llama2-13b", kLlama, 40, 5120, 40, 40, 128, 13824, 32000, 4096, false, false, kLlama2},
    PublishedModel{"llama2-70b", kLlama, 80, 8192, 64, 8, 128, 28672, 32000, 4096, false, false, kLlama2},
    PublishedModel{"llama3-8b", kLlama, 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, false, kLlama3},
    PublishedModel{"llama3-70b", kLlama, 80, 8192, 64, 8, 128, 28672, 128256, 8192, false, false, kLlama3},
    PublishedModel{"llama3.1-405b", kLlama, 126, 16384, 128, 8, 128, 53248, 128256, 131072, false, false, kLlama3},
    PublishedModel{"llama3.2-1b", kLlama, 16, 2048, 32, 8, 64, 8192, 128256, 131072, true, false, "config.json"},
    PublishedModel{"llama3.2-3b", kLlama, 28, 3072, 24, 8, 128, 8192, 128256, 131072, true, false, "config.json"},
    PublishedModel{"mistral-7b", kLlama, 32, 4096, 32, 8, 128, 14336, 32000, 8192, false, false, kMistral},
    PublishedModel{"qwen2.5-0.5b", kLlama, 24, 896, 14, 2, 64, 4864, 151936, 32768, true, true, kQwen},
    PublishedModel{"qwen2.5-1.5b", kLlama, 28, 1536, 12, 2, 128, 8960, 151936, 32768, true, true, kQwen},
    PublishedModel{"qwen2.5-3b", kLlama, 36, 2048, 16, 2, 128, 11008, 151936, 32768, true, true, kQwen},
    PublishedModel{"qwen2.5-7b", kLlama, 28, 3584, 28, 4, 128, 18944, 152064, 131072, false, true, kQwen},
    PublishedModel{"qwen2.5-14b", kLlama, 48, 5120, 40, 8, 128, 13824, 152064, 131072, false, true, kQwen},
    PublishedModel{"qwen2.5-32b", kLlama, 64, 5120, 40, 8, 128, 27648, 152064, 131072, false, true, kQwen},
    PublishedModel{"qwen2.5-72b", kLlama, 80, 8192, 64, 8, 128, 29568, 152064, 131072, false, true, kQwen},
};
// clang-format on

// Weights and biases: attention's q, k, v (3) and output (1), the MLP's two, two LayerNorms.
uint64_t gpt_block(uint64_t hidden, uint64_t mlp) {
  const uint64_t weights = 4 * hidden * hidden + 2 * hidden * mlp;
  const uint64_t biases = 4 * hidden + mlp + hidden;
  return weights + biases + 4 * hidden;
}

uint64_t llama_block(const PublishedModel& model) {
  const uint64_t queries = model.heads * model.head_size;
  const uint64_t keys_and_values = 2 * model.key_value_heads * model.head_size;
  const uint64_t attention = model.hidden * (2 * queries + keys_and_values);
  const uint64_t biases = model.qkv_bias ? queries + keys_and_values : 0;
  return attention + biases + 3 * model.hidden * model.mlp + 2 * model.hidden;
}

}  // namespace

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

uint64_t parameter_count(const PublishedModel& model) {
  const uint64_t tables = model.vocabulary * model.hidden * (model.tied_head ? 1 : 2);
  if (model.kind == BlockKind::kLlama) {
    return tables + model.layers * llama_block(model) + model.hidden;
  }
  return tables + model.positions * model.hidden +
         model.layers * gpt_block(model.hidden, model.mlp) + 2 * model.hidden;
}

uint64_t largest_module(const PublishedModel& model) {
  const uint64_t embedding = model.vocabulary * model.hidden;
  const uint64_t mlp = model.mlp * model.hidden;
  // GPT-2's first MLP layer has a bias as wide as its output; Llama's linears have none.
  return std::max(embedding, model.kind == BlockKind::kGpt ? mlp + model.mlp : mlp);
}

}  // namespace gxp
