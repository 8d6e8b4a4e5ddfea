#include "lib/ckpt/gguf/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

constexpr std::string_view kLayerEps = "attention.layer_norm_epsilon";

constexpr GgufFamily kGgufFamilies[] = {
    {.family = "gpt2", .architecture = "gpt2", .norm_eps = kLayerEps},
    {.family = "gpt_neox",
     .architecture = "gptneox",
     .norm_eps = kLayerEps,
     .head = GgufHead::kStored,
     .tells_rope_size = true},
    {.family = "llama",
     .architecture = "llama",
     .turns_pairs = true,
     .any_biases = true,
     .tells_rope_size = true,
     .takes_rope_freqs = true},
    {.family = "mistral",
     .architecture = "llama",
     .turns_pairs = true,
     .tells_rope_size = true,
     .takes_rope_freqs = true},
    {.family = "qwen2", .architecture = "qwen2", .fills_hidden = true},
    {.family = "qwen3", .architecture = "qwen3"},
    {.family = "smollm3", .architecture = "smollm3", .turns_pairs = true, .tells_rope_size = true},
    {.family = "gemma", .architecture = "gemma", .head = GgufHead::kTied},
    {.family = "gemma2", .architecture = "gemma2", .head = GgufHead::kTied},
    {.family = "gemma3_text", .architecture = "gemma3"},
    {.family = "phi",
     .architecture = "phi2",
     .norm_eps = kLayerEps,
     .head = GgufHead::kStored,
     .tells_rope_size = true,
     .fills_hidden = true},
    {.family = "phi3", .architecture = "phi3", .tells_rope_size = true, .fills_hidden = true},
    {.family = "olmo2", .architecture = "olmo2", .head = GgufHead::kStored, .fills_hidden = true},
    {.family = "granite",
     .architecture = "granite",
     .turns_pairs = true,
     .any_biases = true,
     .tells_rope_size = true,
     .takes_rope_freqs = true}};

// Without ".weight" or ".bias".
struct GgufName {
  std::string_view DecoderNames::*ours;
  std::string_view theirs;
  bool in_block = true;
};

constexpr std::array kGgufNames = {GgufName{&DecoderNames::token_table, "token_embd", false},
                                   GgufName{&DecoderNames::position_table, "position_embd", false},
                                   GgufName{&DecoderNames::before_1, "attn_norm"},
                                   GgufName{&DecoderNames::qkv, "attn_qkv"},
                                   GgufName{&DecoderNames::query, "attn_q"},
                                   GgufName{&DecoderNames::key, "attn_k"},
                                   GgufName{&DecoderNames::value, "attn_v"},
                                   GgufName{&DecoderNames::query_norm, "attn_q_norm"},
                                   GgufName{&DecoderNames::key_norm, "attn_k_norm"},
                                   GgufName{&DecoderNames::output, "attn_output"},
                                   GgufName{&DecoderNames::after_1, "post_attention_norm"},
                                   GgufName{&DecoderNames::before_2, "ffn_norm"},
                                   GgufName{&DecoderNames::gate_up, "ffn_up"},
                                   GgufName{&DecoderNames::gate, "ffn_gate"},
                                   GgufName{&DecoderNames::up, "ffn_up"},
                                   GgufName{&DecoderNames::down, "ffn_down"},
                                   GgufName{&DecoderNames::after_2, "post_ffw_norm"},
                                   GgufName{&DecoderNames::final_norm, "output_norm", false},
                                   GgufName{&DecoderNames::head, "output", false}};

// A tensor's name without its end, in the block whose number is told, or outside of all.
struct NameParts {
  std::string_view number, rest;
};

NameParts parts_of(std::string_view stem, std::string_view block) {
  const size_t hole = block.find("{}");
  const std::string_view before = block.substr(0, hole), after = block.substr(hole + 2);
  if (!stem.starts_with(before)) return {{}, stem};
  const std::string_view rest = stem.substr(before.size());
  const size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || !rest.substr(digits).starts_with(after))
    return {{}, stem};
  return {rest.substr(0, digits), rest.substr(digits + after.size())};
}

GgufForm form_of(std::string_view theirs, const GgufFamily& row, const DecoderKind& kind,
                 size_t sizes) {
  if (kind.norm_plus_one && theirs.ends_with("_norm")) return GgufForm::kShifted;
  if (row.turns_pairs && (theirs == "attn_q" || theirs == "attn_k")) return GgufForm::kPairs;
  if (kind.qkv == QkvTensors::kPerHead && theirs == "attn_qkv") return GgufForm::kParts;
  const bool is_table = theirs == "token_embd" || theirs == "position_embd" || theirs == "output";
  if (kind.inputs_first && sizes == 2 && !is_table) return GgufForm::kTransposed;
  return GgufForm::kPlain;
}

}  // namespace

std::span<const GgufFamily> gguf_families() { return kGgufFamilies; }

const GgufFamily* find_gguf_family(std::string_view family) {
  const auto* const found = std::ranges::find(kGgufFamilies, family, &GgufFamily::family);
  return found == std::end(kGgufFamilies) ? nullptr : found;
}

std::string gguf_families_in_words() {
  std::vector<std::string_view> names;
  for (const GgufFamily& row : kGgufFamilies) names.push_back(row.family);
  return joined(names, " or ");
}

GgufPlace gguf_place(const TensorSpec& ours, const GgufFamily& row) {
  const Family& family = find_family(row.family);
  const size_t dot = ours.name.rfind('.');
  const std::string_view whole = ours.name;
  const NameParts parts = parts_of(whole.substr(0, dot), family.names.block);
  const auto* const found = std::ranges::find_if(kGgufNames, [&](const GgufName& name) {
    return name.in_block != parts.number.empty() && family.names.*name.ours == parts.rest;
  });
  GXP_ASSERT(found != kGgufNames.end());
  const std::string block = found->in_block ? fmt::format("blk.{}.", parts.number) : "";
  return {fmt::format("{}{}{}", block, found->theirs, whole.substr(dot)),
          form_of(found->theirs, row, family.kind, ours.shape.size())};
}

std::vector<uint64_t> gguf_shape(const TensorSpec& ours, GgufForm form) {
  std::vector<uint64_t> shape(ours.shape.begin(), ours.shape.end());
  if (form == GgufForm::kTransposed) std::ranges::reverse(shape);
  return shape;
}

}  // namespace gxp
