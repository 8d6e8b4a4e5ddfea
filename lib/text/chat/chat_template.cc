#include "lib/text/chat/chat_template.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "lib/base/hash.h"
#include "lib/text/chat/message_words.h"

namespace gxp {
namespace {

// Of parts that are all texts.
std::string joined_parts(const JinjaList& parts) {
  std::string text;
  for (const JinjaValue& part : parts.items) text += *part.dict()->find("text")->text();
  return text;
}

bool are_text_parts(const JinjaList& parts) {
  return !parts.items.empty() && std::ranges::all_of(parts.items, [](const JinjaValue& part) {
    const JinjaValue* text = part.dict() == nullptr ? nullptr : part.dict()->find("text");
    return text != nullptr && text->text() != nullptr;
  });
}

// chat_template_utils._alias_reasoning_fields of transformers 5.
JinjaDict with_reasoning(JinjaDict message) {
  for (const char* name : kReasoningNames) {
    const JinjaValue* found = message.find(name);
    if (found == nullptr) continue;
    const JinjaValue reasoning = *found;
    if (message.find("thinking") == nullptr) {
      JinjaDict first;  // where Python's dict has it
      first.set("thinking", reasoning);
      for (const auto& [key, value] : message.entries()) first.set(key, value);
      message = std::move(first);
    }
    message.set("reasoning_content", reasoning);
    break;
  }
  return message;
}

JinjaValue prepared(const JinjaValue& message, bool keeps_parts) {
  if (message.dict() == nullptr) return message;
  JinjaDict present;
  for (const auto& [key, value] : message.dict()->entries())
    if (!value.is_none()) present.set(key, value);
  const JinjaValue* content = present.find("content");
  const JinjaList* parts = content == nullptr ? nullptr : content->list();
  if (parts != nullptr && are_text_parts(*parts) && (parts->items.size() == 1 || !keeps_parts))
    present.set("content", joined_parts(*parts));
  return with_reasoning(std::move(present));
}

std::vector<MessageSpan> message_spans(const JinjaOutput& output, const JinjaList& messages) {
  std::vector<MessageSpan> spans;
  for (const auto& [item, printed] : output.iterations) {
    const auto message = std::ranges::find(messages.items, item, &JinjaValue::dict);
    const std::string_view text =
        std::string_view(output.text).substr(printed.begin, printed.end - printed.begin);
    if (message != messages.items.end() && text.find_first_not_of(" \t\r\n") != text.npos)
      spans.push_back({size_t(message - messages.items.begin()), printed});
  }
  return spans;
}

std::string digest_of(std::string_view source, const JinjaDict& special_tokens,
                      std::string_view day) {
  Hasher hasher;
  const auto add = [&](std::string_view text) {
    hasher.update(std::as_bytes(std::span(text)));
    hasher.update(std::as_bytes(std::span("", 1)));
  };
  add(source);
  for (const auto& [name, token] : special_tokens.entries()) {
    add(name);
    add(*token.text());
  }
  add(day);
  return hasher.hex();
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string name, JinjaDict special_tokens,
                           std::time_t now)
    : jinja_(source, std::move(name)), special_tokens_(std::move(special_tokens)), now_(now) {
  std::array<char, 32> day{};
  std::tm local{};
  localtime_r(&now_, &local);
  if (jinja_.mentions("strftime_now")) std::strftime(day.data(), day.size(), "%F", &local);
  digest_ = digest_of(source, special_tokens_, day.data());
}

ChatRendering ChatTemplate::render(const JinjaValue& messages, bool add_generation_prompt,
                                   const JinjaDict& variables) const {
  const bool keeps_parts = jinja_.mentions("type") && jinja_.mentions("text");
  JinjaList list;
  const JinjaValue::List taken = items_of(messages);
  for (const JinjaValue& message : taken->items)
    list.items.push_back(prepared(message, keeps_parts));
  JinjaDict all;
  all.set("tools", JinjaNone{});
  all.set("documents", JinjaNone{});
  for (const JinjaDict* some : {&special_tokens_, &variables})
    for (const auto& [key, value] : some->entries()) all.set(key, value);
  all.set("messages", list);
  all.set("add_generation_prompt", add_generation_prompt);
  JinjaOutput output = jinja_.render(all, now_);
  std::vector<MessageSpan> spans = message_spans(output, list);
  return {std::move(output.text), std::move(output.generation), std::move(spans)};
}

std::string ChatTemplate::prompt(std::string_view message) const {
  JinjaDict user;
  user.set("role", "user");
  user.set("content", message);
  return render(JinjaList{.items = {std::move(user)}}, true).text;
}

}  // namespace gxp
