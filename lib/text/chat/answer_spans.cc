#include "lib/text/chat/answer_spans.h"

#include <algorithm>
#include <string_view>

#include "lib/base/error.h"
#include "lib/text/chat/message_words.h"

namespace gxp {
namespace {

constexpr const char* kOtherWords = "\x01";
constexpr const char* kOtherWordsInJson = "\\u0001";

std::string_view part_of(std::string_view text, ByteSpan span) {
  return text.substr(span.begin, span.end - span.begin);
}

JinjaList first_messages(const Conversation& conversation, size_t count) {
  const std::vector<JinjaValue>& messages = messages_of(conversation);
  return {.items = {messages.begin(), messages.begin() + ptrdiff_t(count)}};
}

size_t common_length(std::string_view left, std::string_view right) {
  return size_t(std::ranges::mismatch(left, right).in1 - left.begin());
}

// Without the beginning of a character or a tag that `text` does not end.
std::string_view whole_part(std::string_view text, std::string_view longer) {
  size_t size = text.size();
  while (size > 0 && size < longer.size() && (longer[size] & 0xc0) == 0x80) --size;
  text = text.substr(0, size);
  const size_t tag = text.find_last_of("<>");
  return tag != text.npos && text[tag] == '<' ? text.substr(0, tag) : text;
}

class LoopSpans {
 public:
  LoopSpans(const ChatTemplate& chat, const Conversation& conversation,
            const ChatRendering& rendering)
      : chat_(chat), conversation_(conversation), rendering_(rendering) {}

  ByteSpan find(size_t at) {
    at_ = at;
    const ByteSpan turn = turn_in(rendering_);
    const std::string_view text = part_of(rendering_.text, turn);
    check_is_alone();
    const std::string other_text = turn_of_other_words(turn);
    if (at == 0) return {0, turn.end};
    return {turn.begin + uint32_t(prompt_length(text, other_text)), turn.end};
  }

 private:
  [[nodiscard]] ChatRendering render(JinjaList messages, bool add_generation_prompt) const {
    try {
      return chat_.render(std::move(messages), add_generation_prompt, conversation_.variables);
    } catch (const Error& error) {
      refuse(error.what());
    }
  }

  // What is printed for the message; to the end, if no other message follows.
  [[nodiscard]] ByteSpan turn_in(const ChatRendering& rendering) const {
    const auto& spans = rendering.messages;
    const auto found = std::ranges::find(spans, at_, &MessageSpan::message);
    if (found == spans.end()) refuse("no loop over the messages prints it");
    if (std::ranges::count(spans, at_, &MessageSpan::message) > 1)
      refuse("more than one loop prints it");
    const bool is_last = std::ranges::none_of(
        spans, [&](const MessageSpan& other) { return other.printed.begin >= found->printed.end; });
    return {found->printed.begin, is_last ? uint32_t(rendering.text.size()) : found->printed.end};
  }

  // Templates may print a tool's answer with the call, and anything behind the last message.
  void check_is_alone() const {
    JinjaList messages = *conversation_.messages.list();
    for (size_t at = 0; at < messages.items.size(); ++at) {
      const JinjaDict message = *messages.items[at].dict();
      if (at != at_ && has_words(message)) messages.items[at] = with_words(message, kOtherWords);
    }
    const ChatRendering rendering = render(std::move(messages), false);
    const std::string_view turn = part_of(rendering.text, turn_in(rendering));
    if (turn.find(kOtherWords) != turn.npos || turn.find(kOtherWordsInJson) != turn.npos)
      refuse("the text of another message is printed with it");
  }

  // The same with other words, which change nothing else.
  [[nodiscard]] std::string turn_of_other_words(ByteSpan turn) const {
    JinjaList messages = *conversation_.messages.list();
    const JinjaDict message = *messages.items[at_].dict();
    messages.items[at_] = with_reasoning_and_words(message, kOtherWords);
    const std::string other = render(std::move(messages), false).text;
    const std::string_view text = rendering_.text;
    const std::string_view before = text.substr(0, turn.begin);
    const std::string_view after = text.substr(turn.end);
    if (other == text && has_words(message)) refuse("its text is not printed");
    if (!other.starts_with(before) || !other.ends_with(after) ||
        other.size() < before.size() + after.size())
      refuse("its text changes what is printed for others");
    return other.substr(before.size(), other.size() - before.size() - after.size());
  }

  // Of the generation prompt that the turn begins with. The prompt may go on where the rendering does
  // not, so that the model begins to reason, or does not.
  [[nodiscard]] size_t prompt_length(std::string_view turn, std::string_view other_turn) const {
    const std::string prompt = prompt_before();
    if (turn.starts_with(prompt)) return prompt.size();
    const std::string_view common =
        turn.substr(0, std::min(common_length(turn, prompt), common_length(other_turn, prompt)));
    const size_t length = whole_part(common, turn).size();
    if (turn.substr(0, length).find_first_not_of(" \t\r\n") == turn.npos)
      refuse("it does not begin with the generation prompt");
    return length;
  }

  // What a rendering of the messages before this one has after the last of them, if it asks for an
  // answer.
  [[nodiscard]] std::string prompt_before() const {
    const ChatRendering asking = render(first_messages(conversation_, at_), true);
    const ChatRendering telling = render(first_messages(conversation_, at_), false);
    size_t end = common_length(asking.text, telling.text);
    if (!asking.messages.empty()) {
      const auto last = std::ranges::max(asking.messages, {},
                                         [](const MessageSpan& span) { return span.printed.end; });
      end = std::min(end, size_t{last.printed.end});
    }
    return asking.text.substr(end);
  }

  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorKind::kCorrupt,
         "which part is message {}, the assistant's, cannot be told: {}; a template with "
         "{{% generation %}} tags says so itself",
         at_ + 1, why);
  }

  const ChatTemplate& chat_;
  const Conversation& conversation_;
  const ChatRendering& rendering_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<ByteSpan>> find_prefix_spans(const ChatTemplate& chat,
                                                       const Conversation& conversation,
                                                       const ChatRendering& rendering) {
  // None: it is not how the whole rendering begins.
  const auto prefix_length = [&](size_t count, bool asks) -> std::optional<size_t> {
    if (count == messages_of(conversation).size() && !asks) return rendering.text.size();
    const std::string prefix =
        chat.render(first_messages(conversation, count), asks, conversation.variables).text;
    return rendering.text.starts_with(prefix) ? std::optional(prefix.size()) : std::nullopt;
  };
  std::vector<ByteSpan> spans;
  for (size_t at = 0; at < conversation.trained.size(); ++at) {
    if (!conversation.trained[at]) continue;
    try {
      const std::optional<size_t> begin = at == 0 ? 0 : prefix_length(at, true);
      const std::optional<size_t> end = begin ? prefix_length(at + 1, false) : std::nullopt;
      if (!end || *begin > *end) return std::nullopt;
      spans.push_back({uint32_t(*begin), uint32_t(*end)});
    } catch (const Error&) {
      return std::nullopt;  // the template refuses this part
    }
  }
  return spans;
}

std::vector<ByteSpan> find_loop_spans(const ChatTemplate& chat, const Conversation& conversation,
                                      const ChatRendering& rendering) {
  LoopSpans finder(chat, conversation, rendering);
  std::vector<ByteSpan> spans;
  for (size_t at = 0; at < conversation.trained.size(); ++at)
    if (conversation.trained[at]) spans.push_back(finder.find(at));
  return spans;
}

}  // namespace gxp
