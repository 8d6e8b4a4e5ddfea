#include "lib/data/documents/json_record.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>

#include "lib/base/text/utf8.h"
#include "lib/data/documents/byte_window.h"

namespace gxp {
namespace {

namespace dom = simdjson::dom;

static_assert(ByteWindow::kPadding >= simdjson::SIMDJSON_PADDING);

JsonType type_of(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::NULL_VALUE:
      return JsonType::kNull;
    case dom::element_type::BOOL:
      return JsonType::kBool;
    case dom::element_type::STRING:
      return JsonType::kText;
    case dom::element_type::ARRAY:
      return JsonType::kList;
    case dom::element_type::OBJECT:
      return JsonType::kObject;
    default:
      return JsonType::kNumber;
  }
}

// The length of the number that `text` begins with, by RFC 8259; 0: it begins with none.
size_t number_length(std::string_view text) {
  size_t at = 0;
  const auto skip = [&](std::string_view set, size_t most) {
    const size_t end = std::min(text.size(), at + std::min(most, text.size()));
    const size_t begin = at;
    while (at < end && set.find(text[at]) != std::string_view::npos) ++at;
    return at > begin;
  };
  constexpr std::string_view kDigits = "0123456789";
  skip("-", 1);
  if (!skip("0", 1) && !skip(kDigits, text.size())) return 0;
  if (skip(".", 1) && !skip(kDigits, text.size())) return 0;
  if (!skip("eE", 1)) return at;
  skip("+-", 1);
  return skip(kDigits, text.size()) ? at : 0;
}

// Behind the string that begins at `at`.
size_t string_end(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return std::min(at + 1, text.size());
}

// The text with 0 for each number: the parser's numbers have 64 bits, and nobody asks for them.
// What is not a whole number between others' bounds stays, and so stays an error.
std::string without_numbers(std::string_view text) {
  constexpr std::string_view kBefore = ":[, \t\r\n", kBehind = "]}, \t\r\n";
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      const size_t end = string_end(text, at);
      plain += text.substr(at, end - at);
      at = end;
      continue;
    }
    const bool may_begin = at > 0 && kBefore.find(text[at - 1]) != std::string_view::npos;
    const size_t length = may_begin ? number_length(text.substr(at)) : 0;
    const bool is_whole = length > 0 && at + length < text.size() &&
                          kBehind.find(text[at + length]) != std::string_view::npos;
    plain += is_whole ? '0' : text[at];
    at += is_whole ? length : 1;
  }
  return plain;
}

// The byte that begins no character, from 1; 0: there is none.
size_t bad_utf8_byte(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return at + 1;
    at += length;
  }
  return 0;
}

std::string describe(simdjson::error_code error, std::string_view text) {
  if (const size_t byte = bad_utf8_byte(text); byte > 0)
    return fmt::format("not UTF-8 (byte {})", byte);
  switch (error) {
    case simdjson::UNESCAPED_CHARS:
      return "not JSON: a control character in a string, which must be written as \\n, \\t or "
             "\\u00..";
    case simdjson::UNCLOSED_STRING:
      return "not JSON: a string without an end";
    case simdjson::STRING_ERROR:
      return "not text: a string has an unknown escape, or half of a surrogate pair (\\ud800 to "
             "\\udfff alone)";
    case simdjson::DEPTH_ERROR:
      return "JSON nested deeper than 1,024";
    case simdjson::MEMALLOC:
    case simdjson::CAPACITY:
      return "too large for memory";
    default:
      return "not JSON";
  }
}

}  // namespace

std::string_view to_string(JsonType type) {
  constexpr std::array<std::string_view, 7> kNames = {
      "nothing", "null", "true or false", "a number", "a string", "a list", "an object"};
  return kNames[size_t(type)];
}

struct JsonRecord::Parsed {
  dom::parser parser;
  dom::object object;
};

JsonRecord::JsonRecord() : parsed_(std::make_unique<Parsed>()) {}
JsonRecord::~JsonRecord() = default;

std::string JsonRecord::parse(std::string_view text) {
  dom::element root;
  auto error = parsed_->parser.parse(text.data(), text.size(), false).get(root);
  if (error == simdjson::NUMBER_ERROR)
    error = parsed_->parser.parse(without_numbers(text)).get(root);
  if (error != simdjson::SUCCESS) return describe(error, text);
  if (root.get(parsed_->object) != simdjson::SUCCESS)
    return fmt::format("JSON, but {}, not an object", to_string(type_of(root)));
  return "";
}

JsonValue JsonRecord::find(std::span<const std::string> path) const {
  dom::object object = parsed_->object;
  dom::element found;
  for (size_t depth = 0; depth < path.size(); ++depth) {
    if (depth > 0 && found.get(object) != simdjson::SUCCESS) return {};
    bool is_there = false;
    for (const dom::key_value_pair field : object) {
      if (field.key != path[depth]) continue;
      found = field.value;
      is_there = true;
    }
    if (!is_there) return {};
  }
  JsonValue value{.type = type_of(found)};
  if (value.type == JsonType::kText) value.text = found.get_string().value_unsafe();
  return value;
}

std::vector<std::string> JsonRecord::names() const {
  std::vector<std::string> names;
  for (const dom::key_value_pair field : parsed_->object) names.emplace_back(field.key);
  return names;
}

}  // namespace gxp
