#include "lib/text/jinja/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lib/base/text/utf8.h"
#include "lib/text/jinja/value.h"

namespace gxp {
namespace {

// The bytes of the white space character that `text` begins with, or 0: str.isspace().
size_t space_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  if (byte(0) < 0x80)
    return (byte(0) >= 9 && byte(0) <= 13) || (byte(0) >= 0x1c && byte(0) <= 0x20);
  if (byte(0) == 0xc2) return byte(1) == 0x85 || byte(1) == 0xa0 ? 2 : 0;
  const unsigned tail = byte(1) << 8 | byte(2);
  const bool is_space = (byte(0) == 0xe1 && tail == 0x9a80) ||
                        (byte(0) == 0xe3 && tail == 0x8080) ||
                        (byte(0) == 0xe2 && ((tail >= 0x8080 && tail <= 0x808a) || tail == 0x80a8 ||
                                             tail == 0x80a9 || tail == 0x80af || tail == 0x819f));
  return is_space ? 3 : 0;
}

std::string_view last_character(std::string_view text) {
  size_t at = text.size();
  while (at > 0 && continues_utf8(text[--at])) {
  }
  return text.substr(at);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char upper_letter(char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }
char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

std::string checked_ascii(std::string_view text) {
  if (!std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    jinja_fail("upper and lower case of text that is not ASCII are not supported");
  return std::string(text);
}

std::vector<std::string_view> split_by_space(std::string_view text, const SplitRule& rule) {
  std::vector<std::string_view> parts;
  for (text = stripped(text, rule.from_right ? Sides::kRight : Sides::kLeft); !text.empty();) {
    if (rule.limit >= 0 && parts.size() == size_t(rule.limit)) {
      parts.push_back(text);  // with the white space at its far side
      break;
    }
    size_t end = rule.from_right ? text.size() : 0;
    if (rule.from_right) {
      while (end > 0 && space_length(last_character(text.substr(0, end))) == 0)
        end -= last_character(text.substr(0, end)).size();
      parts.push_back(text.substr(end));
      text = stripped(text.substr(0, end), Sides::kRight);
    } else {
      while (end < text.size() && space_length(text.substr(end)) == 0) ++end;
      parts.push_back(text.substr(0, end));
      text = stripped(text.substr(end), Sides::kLeft);
    }
  }
  return parts;
}

}  // namespace

size_t character_count(std::string_view text) {
  return size_t(std::ranges::count_if(text, [](char c) { return !continues_utf8(c); }));
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    for (end = begin + 1; end < text.size() && continues_utf8(text[end]);) ++end;
    characters.push_back(text.substr(begin, end - begin));
  }
  return characters;
}

std::string_view stripped(std::string_view text, Sides sides, std::optional<std::string_view> set) {
  const auto goes = [&set](std::string_view character) {
    return set ? set->find(character) != std::string_view::npos : space_length(character) > 0;
  };
  while (sides != Sides::kRight && !text.empty()) {
    const size_t length = std::max<size_t>(utf8_length(text), 1);
    if (!goes(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  while (sides != Sides::kLeft && !text.empty() && goes(last_character(text)))
    text.remove_suffix(last_character(text).size());
  return text;
}

size_t leading_space(std::string_view text) {
  return text.size() - stripped(text, Sides::kLeft).size();
}

std::vector<std::string_view> split_text(std::string_view text, const SplitRule& rule) {
  std::vector<std::string_view> parts;
  if (!rule.separator) {
    parts = split_by_space(text, rule);
  } else {
    if (rule.separator->empty()) jinja_fail("split() needs a separator that is not empty");
    while (rule.limit < 0 || parts.size() < size_t(rule.limit)) {
      const size_t at = rule.from_right ? text.rfind(*rule.separator) : text.find(*rule.separator);
      if (at == std::string_view::npos) break;
      const std::string_view rest = text.substr(at + rule.separator->size());
      parts.push_back(rule.from_right ? rest : text.substr(0, at));
      text = rule.from_right ? text.substr(0, at) : rest;
    }
    parts.push_back(text);
  }
  if (rule.from_right) std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  // str.splitlines()'s own line ends.
  const auto end_length = [](std::string_view rest) -> size_t {
    if (rest.starts_with("\r\n")) return 2;
    const bool is_short =
        (rest[0] >= '\n' && rest[0] <= '\r') || (rest[0] >= 0x1c && rest[0] <= 0x1e);
    if (is_short) return 1;
    if (rest.starts_with("\xc2\x85")) return 2;
    return rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9") ? 3 : 0;
  };
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = end_length(text.substr(at));
    if (length > 0) {
      lines.push_back(text.substr(begin, at - begin));
      begin = at + length;
    }
    at += std::max<size_t>(length, 1);
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

size_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return character_count(text) + 1;
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

std::string upper_text(std::string_view text) {
  std::string result = checked_ascii(text);
  std::ranges::transform(result, result.begin(), upper_letter);
  return result;
}

std::string lower_text(std::string_view text) {
  std::string result = checked_ascii(text);
  std::ranges::transform(result, result.begin(), lower_letter);
  return result;
}

std::string capitalized(std::string_view text) {
  std::string result = lower_text(text);
  if (!result.empty()) result[0] = upper_letter(result[0]);
  return result;
}

std::string title_text(std::string_view text) {
  std::string result = lower_text(text);
  for (size_t at = 0; at < result.size(); ++at)
    if (at == 0 || !is_letter(result[at - 1])) result[at] = upper_letter(result[at]);
  return result;
}

std::string title_words(std::string_view text) {
  std::string result = lower_text(text);
  const auto begins_word = [](char before) {
    return space_length(std::string_view(&before, 1)) > 0 ||
           std::string_view("-({[<").find(before) != std::string_view::npos;
  };
  for (size_t at = 0; at < result.size(); ++at)
    if (at == 0 || begins_word(result[at - 1])) result[at] = upper_letter(result[at]);
  return result;
}

std::string escaped_html(std::string_view text) {
  constexpr size_t kMaxText = size_t{32} << 20;  // each byte may become five
  if (text.size() > kMaxText) jinja_fail("HTML of more than {} bytes is not supported", kMaxText);
  std::string escaped;
  for (const char letter : text) switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '"':
        escaped += "&#34;";
        break;
      default:
        escaped += letter;
    }
  return escaped;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> digits{};
  const double size = std::abs(value);
  // repr() has an exponent outside of this range.
  const bool is_fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value,
                    is_fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits.data(), end.ptr);
  if (is_fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace gxp
