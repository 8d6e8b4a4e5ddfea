#include "lib/text/chat/training_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {
namespace {

const std::vector<JinjaValue>& messages_of(const Conversation& conversation) {
  return conversation.messages.list()->items;
}

const std::string& role_of(const JinjaValue& message) {
  return *message.dict()->find("role")->text();
}

// It has each of these names in a template.
void check_reasoning_is_rendered(const JinjaTemplate& jinja, const JinjaDict& message) {
  constexpr std::array<const char*, 3> kNames = {"reasoning_content", "thinking", "reasoning"};
  if (std::ranges::any_of(kNames, [&](const char* name) { return jinja.mentions(name); })) return;
  for (const char* name : kNames) {
    const JinjaValue* reasoning = message.find(name);
    if (reasoning != nullptr && is_true(*reasoning))
      fail(ErrorKind::kCorrupt, "a message has {}, which the {} does not render", name,
           jinja.name());
  }
}

// What templates without a place for it would leave out in silence.
void check_is_rendered(const JinjaTemplate& jinja, const Conversation& conversation) {
  constexpr std::array<std::string_view, 8> kRoles = {
      "system", "developer", "user", "assistant", "tool", "function", "ipython", "observation"};
  for (const JinjaValue& message : messages_of(conversation)) {
    const std::string& role = role_of(message);
    if (std::ranges::find(kRoles, role) == kRoles.end() && !jinja.mentions(role))
      fail(ErrorKind::kCorrupt, "the role '{}' is unknown, also to the {}", role, jinja.name());
    for (const char* name : {"tool_calls", "function_call"}) {
      const JinjaValue* calls = message.dict()->find(name);
      if (calls != nullptr && is_true(*calls) && !jinja.mentions(name))
        fail(ErrorKind::kCorrupt, "a message has {}, which the {} does not render", name,
             jinja.name());
    }
    check_reasoning_is_rendered(jinja, *message.dict());
  }
}

// By rendering without them: a template may have the name for something else.
void check_variables_are_rendered(const ChatTemplate& chat, const Conversation& conversation,
                                  const std::string& text) {
  for (const char* name : {"tools", "documents"}) {
    const JinjaValue* value = conversation.variables.find(name);
    if (value == nullptr || !is_true(*value)) continue;
    JinjaDict without = conversation.variables;
    without.set(name, JinjaNone{});
    if (chat.render(conversation.messages, false, without).text == text)
      fail(ErrorKind::kCorrupt, "the conversation has {}, which the {} does not render", name,
           chat.jinja().name());
  }
}

bool has_words(const JinjaValue& message) {
  const JinjaValue* content = message.dict()->find("content");
  if (content == nullptr || content->is_none()) return false;
  const auto is_blank = [](std::string_view text) {
    return text.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos;
  };
  if (content->text() != nullptr) return !is_blank(*content->text());
  return !std::ranges::all_of(content->list()->items, [&](const JinjaValue& part) {
    return is_blank(*part.dict()->find("text")->text());
  });
}

// The message with another text in each place.
JinjaDict with_other_words(const JinjaDict& message) {
  constexpr const char* kOther = "\x01";
  JinjaDict changed = message;
  const JinjaList* parts = message.find("content")->list();
  if (parts == nullptr) {
    changed.set("content", kOther);
    return changed;
  }
  JinjaList others;
  for (const JinjaValue& part : parts->items) {
    JinjaDict other = *part.dict();
    other.set("text", kOther);
    others.items.emplace_back(std::move(other));
  }
  changed.set("content", std::move(others));
  return changed;
}

bool depends_on_words(const ChatTemplate& chat, const Conversation& conversation, size_t at,
                      const std::string& text) {
  JinjaList others = *conversation.messages.list();
  others.items[at] = with_other_words(*others.items[at].dict());
  try {
    return chat.render(std::move(others), false, conversation.variables).text != text;
  } catch (const Error&) {
    return true;  // the template has looked at the words
  }
}

// Templates may pass over the messages of roles for which they have no branch. A system's message is
// where they decide to have it: some render it only for the last question.
void check_words_are_rendered(const ChatTemplate& chat, const Conversation& conversation,
                              const std::string& text) {
  for (size_t at = 0; at < messages_of(conversation).size(); ++at) {
    const JinjaValue& message = messages_of(conversation)[at];
    const std::string& role = role_of(message);
    if (role == "user" || role == "assistant" || role == "system" || !has_words(message)) continue;
    if (!depends_on_words(chat, conversation, at, text))
      fail(ErrorKind::kCorrupt,
           "message {}, of the role '{}', has a text that the {} does not render", at + 1, role,
           chat.jinja().name());
  }
}

std::vector<ByteSpan> tagged_spans(const std::vector<ByteSpan>& spans,
                                   const Conversation& conversation) {
  std::vector<bool> trained;  // of the assistant's messages
  for (size_t at = 0; at < conversation.trained.size(); ++at)
    if (role_of(messages_of(conversation)[at]) == "assistant")
      trained.push_back(conversation.trained[at]);
  if (std::ranges::find(trained, false) == trained.end()) return spans;
  if (spans.size() != trained.size())
    fail(ErrorKind::kCorrupt,
         "only some of the assistant's messages count, and the template does not have one "
         "generation block "
         "for each of them: {} messages, {} blocks",
         trained.size(), spans.size());
  std::vector<ByteSpan> chosen;
  for (size_t at = 0; at < spans.size(); ++at)
    if (trained[at]) chosen.push_back(spans[at]);
  return chosen;
}

class PrefixSpans {
 public:
  PrefixSpans(const ChatTemplate& chat, const Conversation& conversation, const std::string& text)
      : chat_(chat), conversation_(conversation), text_(text) {}

  std::vector<ByteSpan> find() {
    std::vector<ByteSpan> spans;
    for (size_t at = 0; at < conversation_.trained.size(); ++at) {
      if (!conversation_.trained[at]) continue;
      const size_t begin = at == 0 ? 0 : length_of_prefix(at, true);
      const size_t end = length_of_prefix(at + 1, false);
      if (begin > end) refuse(at + 1, "it is shorter than the prompt for its last message");
      spans.push_back({uint32_t(begin), uint32_t(end)});
    }
    return spans;
  }

 private:
  size_t length_of_prefix(size_t count, bool add_generation_prompt) {
    const std::vector<JinjaValue>& messages = messages_of(conversation_);
    if (count == messages.size() && !add_generation_prompt) return text_.size();
    JinjaList first;
    first.items.assign(messages.begin(), messages.begin() + ptrdiff_t(count));
    std::string rendered;
    try {
      rendered =
          chat_.render(std::move(first), add_generation_prompt, conversation_.variables).text;
    } catch (const Error& error) {
      refuse(count, error.what());
    }
    if (!text_.starts_with(rendered)) refuse(count, "it is not how the whole rendering begins");
    return rendered.size();
  }

  [[noreturn]] static void refuse(size_t count, std::string_view why) {
    fail(ErrorKind::kCorrupt,
         "which part is the assistant's cannot be told from the rendering of the first {} "
         "messages: {}; a "
         "template with {{% generation %}} tags says so itself",
         count, why);
  }

  const ChatTemplate& chat_;
  const Conversation& conversation_;
  const std::string& text_;
};

}  // namespace

TrainingText render_for_training(const ChatTemplate& chat, const Conversation& conversation,
                                 const std::string& where) {
  try {
    check_is_rendered(chat.jinja(), conversation);
    JinjaOutput output = chat.render(conversation.messages, false, conversation.variables);
    TrainingText result{.text = std::move(output.text), .trained = {}};
    check_words_are_rendered(chat, conversation, result.text);
    check_variables_are_rendered(chat, conversation, result.text);
    result.trained = chat.jinja().has_generation()
                         ? tagged_spans(output.generation, conversation)
                         : PrefixSpans(chat, conversation, result.text).find();
    std::erase_if(result.trained, [](const ByteSpan& span) { return span.begin == span.end; });
    if (result.trained.empty())
      fail(ErrorKind::kCorrupt, "the {} renders nothing of it that counts", chat.jinja().name());
    return result;
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where, error.what());
  }
}

std::vector<uint8_t> trained_of(std::span<const ByteSpan> tokens,
                                std::span<const ByteSpan> trained) {
  std::vector<uint8_t> counts;
  counts.reserve(tokens.size());
  for (const ByteSpan& token : tokens) {
    const auto span = std::ranges::upper_bound(trained, token.begin, {}, &ByteSpan::end);
    counts.push_back(span != trained.end() && span->begin < token.end ? 1 : 0);
  }
  return counts;
}

}  // namespace gxp
