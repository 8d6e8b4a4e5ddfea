#include "lib/tools/topology/read/smi_words.h"

#include <algorithm>

#include "lib/topo/model/text_parts.h"

namespace gxp::smi {
namespace {

// Without colours: ESC [ ... letter.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      plain += text[at];
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == '[') ++at;
    while (at + 1 < text.size() && (is_digit(text[at + 1]) || text[at + 1] == ';')) ++at;
    if (at + 1 < text.size()) ++at;
  }
  return plain;
}

// Blanks that other programs put in the place of spaces, and a table's line.
std::string with_plain_blanks(std::string text) {
  for (const std::string_view blank :
       {"\u00a0", "\u2007", "\u202f", "\u3000", "\u200b", "\ufeff", "\u2502"}) {
    for (size_t at = text.find(blank); at != std::string::npos; at = text.find(blank, at))
      text.replace(at, blank.size(), " ");
  }
  return text;
}

// Whether it begins so; '0' is any digit.
bool begins_like(std::string_view text, std::string_view pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (i == text.size() || (pattern[i] == '0' ? !is_digit(text[i]) : text[i] != pattern[i]))
      return false;
  }
  return true;
}

// "2024-05-01T12:00:00.123Z", "2024-05-01", "[12:00:00,123]": in front of a log's line.
bool is_time(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("[("), word.size()));
  return (begins_like(word, "0000-00-00") || begins_like(word, "00:00:00")) &&
         word.find_first_not_of("0123456789-:.,TZ+])") == std::string_view::npos;
}

}  // namespace

std::vector<Word> words_in_line(std::string_view line, size_t number) {
  std::vector<Word> words;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && !is_blank(line[end])) ++end;
    if (end > at) words.push_back({line.substr(at, end - at), int(at) + 1, number});
    at = std::max(end, at + 1);
  }
  return words;
}

bool is_numbered(std::string_view word, std::string_view stem) {
  return word.size() > stem.size() && word.size() < stem.size() + 6 && word.starts_with(stem) &&
         std::all_of(word.begin() + ptrdiff_t(stem.size()), word.end(), is_digit);
}

size_t cell_length(std::string_view text) {
  if (text.starts_with("NV")) {
    size_t end = 2;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end > 2 && end < 6 ? end : 0;
  }
  size_t longest = 0;
  const auto try_words = [&](const auto& words) {
    for (const std::string_view word : words) {
      if (text.starts_with(word)) longest = std::max(longest, word.size());
    }
  };
  try_words(kNearness);
  try_words(kPeerStates);
  return longest;
}

bool is_device(std::string_view word) {
  if (is_numbered(word, "GPU") || is_numbered(word, "NIC")) return true;
  return cell_length(word) < word.size() && is_digit(word.back()) && !is_digit(word.front()) &&
         word.find_first_of(":.,=") == std::string_view::npos;
}

std::vector<std::string> plain_lines(std::string_view text) {
  const std::string plain = with_plain_blanks(without_escapes(text));
  std::vector<std::string> lines;
  for (const std::string_view line : split(plain, '\n')) {
    std::string& kept = lines.emplace_back(line);
    for (const Word& word : words_in_line(line)) {
      if (is_time(word.text))
        kept.replace(size_t(word.column) - 1, word.text.size(), word.text.size(), ' ');
    }
  }
  return lines;
}

}  // namespace gxp::smi
