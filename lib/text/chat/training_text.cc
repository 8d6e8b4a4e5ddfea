#include "lib/text/chat/training_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/base/error.h"
#include "lib/text/chat/answer_spans.h"
#include "lib/text/chat/message_words.h"

namespace gxp {
namespace {

const std::string& role_of(const JinjaValue& message) {
  return *message.dict()->find("role")->text();
}

// It has each of these names in a template.
void check_reasoning_is_rendered(const JinjaTemplate& jinja, const JinjaDict& message) {
  if (std::ranges::any_of(kReasoningNames, [&](const char* name) { return jinja.mentions(name); }))
    return;
  for (const char* name : kReasoningNames) {
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

// Whether the rendering is another one with this message in place of one that is there.
bool depends_on(const ChatTemplate& chat, const Conversation& conversation, size_t at,
                const std::string& text, JinjaDict other) {
  JinjaList others = *conversation.messages.list();
  others.items[at] = std::move(other);
  try {
    return chat.render(std::move(others), false, conversation.variables).text != text;
  } catch (const Error&) {
    return true;  // the template has looked at it
  }
}

// Templates may pass over the messages of roles for which they have no branch, and over contents of a
// type that they do not expect. A system's message is where they decide to have it: some render it
// only for the last question.
void check_words_are_rendered(const ChatTemplate& chat, const Conversation& conversation,
                              const std::string& text) {
  for (size_t at = 0; at < messages_of(conversation).size(); ++at) {
    const JinjaDict& message = *messages_of(conversation)[at].dict();
    const std::string& role = role_of(messages_of(conversation)[at]);
    const bool is_certain = role == "system" || ((role == "user" || role == "assistant") &&
                                                 has_words_of(text, message));
    if (is_certain || !has_words(message)) continue;
    if (!depends_on(chat, conversation, at, text, with_words(message, "\x01")))
      fail(ErrorKind::kCorrupt,
           "message {}, of the role '{}', has a text that the {} does not render", at + 1, role,
           chat.jinja().name());
  }
}

// A template may have the name for something else. The tools of a system's message are those of the
// conversation; other messages may have anything.
void check_members_are_rendered(const ChatTemplate& chat, const Conversation& conversation,
                                const std::string& text) {
  for (size_t at = 0; at < messages_of(conversation).size(); ++at) {
    const JinjaValue& message = messages_of(conversation)[at];
    const char* name = role_of(message) == "system" ? "tools" : "tool_calls";
    const JinjaValue* value = message.dict()->find(name);
    if (value == nullptr || !is_true(*value)) continue;
    JinjaDict other = *message.dict();
    other.set(name, JinjaNone{});  // as if it were not there
    if (!depends_on(chat, conversation, at, text, std::move(other)))
      fail(ErrorKind::kCorrupt, "message {} has {}, which the {} does not render", at + 1, name,
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

std::vector<ByteSpan> untagged_spans(const ChatTemplate& chat, const Conversation& conversation,
                                     const ChatRendering& rendering) {
  const auto spans = find_prefix_spans(chat, conversation, rendering);
  return spans ? *spans : find_loop_spans(chat, conversation, rendering);
}

}  // namespace

TrainingText render_for_training(const ChatTemplate& chat, const Conversation& conversation,
                                 const std::string& where) {
  try {
    check_is_rendered(chat.jinja(), conversation);
    const ChatRendering rendering =
        chat.render(conversation.messages, false, conversation.variables);
    TrainingText result{.text = rendering.text, .trained = {}};
    check_words_are_rendered(chat, conversation, result.text);
    check_members_are_rendered(chat, conversation, result.text);
    check_variables_are_rendered(chat, conversation, result.text);
    result.trained = chat.jinja().has_generation()
                         ? tagged_spans(rendering.generation, conversation)
                         : untagged_spans(chat, conversation, rendering);
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
