// Files of tests/data/text, and conversations in them.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "lib/base/text_file.h"
#include "lib/text/chat/conversation.h"
#include "lib/text/jinja/template.h"
#include "lib/text/jinja/written.h"

namespace gxp {

inline std::string text_sample(const std::string& name) {
  return read_text_file(fmt::format("{}/text/{}", GXP_TEST_DATA, name), size_t{1} << 24);
}

inline JinjaValue json_sample(const std::string& name) {
  return parse_jinja_json(text_sample(name), name);
}

// Of a file of JSON lines.
inline std::vector<JinjaValue> json_lines(const std::string& name) {
  std::vector<JinjaValue> values;
  std::istringstream lines(text_sample(name));
  for (std::string line; std::getline(lines, line);) values.push_back(parse_jinja_json(line, name));
  return values;
}

// The member of a dict, which is there.
inline const JinjaValue& at(const JinjaValue& object, std::string_view key) {
  const JinjaValue* value = object.dict()->find(key);
  if (value == nullptr) throw std::runtime_error("no member " + std::string(key));
  return *value;
}

// "[0, 3] [5, 9]"
inline std::string words_for(const std::vector<ByteSpan>& spans) {
  std::string text;
  for (const ByteSpan& span : spans)
    text += fmt::format("{}[{}, {}]", text.empty() ? "" : " ", span.begin, span.end);
  return text;
}

inline std::string words_for(const JinjaValue& spans) {
  std::vector<ByteSpan> list;
  for (const JinjaValue& span : spans.list()->items)
    list.push_back(
        {uint32_t(*span.list()->items[0].integer()), uint32_t(*span.list()->items[1].integer())});
  return words_for(list);
}

}  // namespace gxp
