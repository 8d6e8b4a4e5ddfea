#include "lib/base/text/word_aliases.h"

#include <algorithm>
#include <string>

#include "lib/base/text/ascii.h"

namespace gxp {
namespace {

// Names of one thing, without hyphens. A table of words has at most one of a row.
constexpr std::string_view kSameWords[][5] = {
    {"fp64", "f64", "float64", "double"},
    {"fp32", "f32", "float32", "float", "single"},
    {"bf16", "bfloat16"},
    {"fp16", "f16", "float16", "half"},
    {"int8", "i8"},
    {"fullshard", "fsdp", "fsdp2", "fullyshard"},
    {"hybridshard", "hsdp", "hybrid"},
    {"zero1", "stage1", "zerostage1"},
    {"zero2", "stage2", "zerostage2"},
    {"zero3", "stage3", "zerostage3"},
    {"ddp", "dataparallel"},
    {"cuda", "gpu"},
    {"huggingface", "hf", "transformers"},
};

std::string without_hyphens(std::string_view word) {
  std::string plain = lower_case(word);
  std::erase_if(plain, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return plain;
}

bool are_same(std::string_view a, std::string_view b) {
  return std::ranges::any_of(kSameWords, [&](const auto& row) {
    return std::ranges::find(row, a) != std::end(row) && std::ranges::find(row, b) != std::end(row);
  });
}

}  // namespace

std::optional<std::string_view> find_word(std::span<const std::string_view> words,
                                          std::string_view given) {
  const auto exact = std::ranges::find(words, given);
  if (exact != words.end()) return *exact;
  const std::string plain = without_hyphens(given.substr(given.starts_with("torch.") ? 6 : 0));
  if (plain.empty()) return std::nullopt;
  std::optional<std::string_view> found;
  for (const std::string_view word : words) {
    const std::string other = without_hyphens(word);
    if (other != plain && !are_same(other, plain)) continue;
    if (found) return std::nullopt;
    found = word;
  }
  return found;
}

}  // namespace gxp
