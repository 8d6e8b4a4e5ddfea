#include "lib/text/chat/message_words.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/text/jinja/python_text.h"

namespace gxp {
namespace {

// Each text of the content, without the white space at its ends.
std::vector<std::string_view> words_of(const JinjaDict& message) {
  const JinjaValue* content = message.find("content");
  std::vector<std::string_view> words;
  if (content == nullptr || content->is_none()) return words;
  if (content->text() != nullptr) return {stripped(*content->text(), Sides::kBoth)};
  for (const JinjaValue& part : content->list()->items)
    words.push_back(stripped(*part.dict()->find("text")->text(), Sides::kBoth));
  return words;
}

}  // namespace

bool has_words(const JinjaDict& message) {
  return !std::ranges::all_of(words_of(message), &std::string_view::empty);
}

bool has_words_of(std::string_view text, const JinjaDict& message) {
  return std::ranges::all_of(words_of(message),
                             [&](std::string_view words) { return text.find(words) != text.npos; });
}

JinjaDict with_words(const JinjaDict& message, std::string_view words) {
  JinjaDict changed = message;
  const JinjaList* parts = message.find("content")->list();
  if (parts == nullptr) {
    changed.set("content", words);
    return changed;
  }
  JinjaList others;
  for (const JinjaValue& part : parts->items) {
    JinjaDict other = *part.dict();
    other.set("text", words);
    others.items.emplace_back(std::move(other));
  }
  changed.set("content", std::move(others));
  return changed;
}

JinjaDict with_reasoning_and_words(const JinjaDict& message, std::string_view words) {
  JinjaDict changed = has_words(message) ? with_words(message, words) : message;
  for (const char* name : kReasoningNames)
    if (const JinjaValue* reasoning = message.find(name);
        reasoning != nullptr && is_true(*reasoning))
      changed.set(name, words);
  return changed;
}

}  // namespace gxp
