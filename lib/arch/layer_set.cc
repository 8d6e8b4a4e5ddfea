#include "lib/arch/layer_set.h"

#include <algorithm>
#include <charconv>

namespace gxp {
namespace {

// Takes a number off the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<std::vector<bool>> parse_layers(std::string_view text, int layers) {
  if (text == "all") return std::vector<bool>(size_t(layers), true);
  std::vector<bool> in_set(size_t(layers), false);
  if (text.empty()) return in_set;
  do {
    const auto first = take_number(text);
    const auto last = take(text, '-') ? take_number(text) : first;
    if (!first || !last || *first > *last || *last >= layers) return std::nullopt;
    std::fill(in_set.begin() + *first, in_set.begin() + *last + 1, true);
  } while (take(text, ','));
  return text.empty() ? std::optional(in_set) : std::nullopt;
}

std::string layers_in_words(const std::vector<bool>& in_set) {
  if (std::ranges::find(in_set, false) == in_set.end()) return "all";
  std::string words;
  for (size_t layer = 0; layer < in_set.size(); ++layer) {
    if (!in_set[layer]) continue;
    size_t last = layer;
    while (last + 1 < in_set.size() && in_set[last + 1]) ++last;
    if (!words.empty()) words += ',';
    words += std::to_string(layer);
    if (last > layer) words += '-' + std::to_string(last);
    layer = last;
  }
  return words;
}

}  // namespace gxp
