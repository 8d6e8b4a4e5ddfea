// Values from JSON, and values as Python writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/text/jinja/value.h"

namespace gxp {

// A text that a template makes is not longer, in bytes.
inline constexpr size_t kMaxJinjaText = size_t{256} << 20;

// `where` begins the messages: "read FILE". kCorrupt: no JSON or no UTF-8, nested deeper than 64, a key twice in one object, or
// a whole number beyond 64 bits. Cost: linear in the text.
JinjaValue parse_jinja_json(std::string_view text, const std::string& where);

// str(value), which is what templates print. JinjaError: what has no such text, or one that depends
// on Unicode's tables: lists and dicts with text that is not ASCII.
std::string printed(const JinjaValue& value);

// json.dumps(value, ensure_ascii=False, ...), as transformers' filter tojson.
struct JsonLayout {
  std::optional<std::string> indent{};  // of one level
  std::string between_items = ", ";
  std::string after_key = ": ";
  bool sort_keys = false;
};
std::string to_python_json(const JinjaValue& value, const JsonLayout& layout);

}  // namespace gxp
