// Examples of chat data: JSON objects in the spellings that people use, as conversations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/text/jinja/value.h"

namespace gxp {

struct Conversation {
  JinjaValue messages;  // a list of dicts with role (a text) and content, and what else they had
  std::vector<bool> trained;  // for each message: whether it is an assistant's that counts
  JinjaDict variables;        // for the template: tools, documents, chat_template_kwargs
};
const std::vector<JinjaValue>& messages_of(const Conversation& conversation);

// To be tokenized apart and joined; the completion and the end token behind it are trained.
struct PromptCompletion {
  std::string prompt, completion;
};

enum class ChatKind {
  kMessages,
  kConversations,  // messages under another name
  kShareGpt,
  kAlpaca,
  kPromptCompletion,
  kPromptCompletionChat,
};
// "chats, ShareGPT", for people.
std::string_view words_for(ChatKind kind);

struct ChatExample {
  ChatKind kind = ChatKind::kMessages;
  std::variant<Conversation, PromptCompletion> content;  // the latter: of kPromptCompletion
};

// None: the object has no member that chat data have, so that it may be a plain document.
//   messages, conversations            role and content, or other spellings: MessageSpellings
//   prompt and completion              two texts, or two lists of messages of which the second counts
//   instruction and output             Alpaca: instruction, a blank line and the input are the user's
//                                      message, the output is the assistant's, system the system's
// `where` begins the messages: "read FILE, line 3". kCorrupt: something is missing or of the wrong type; images
// and other parts that are no text; no message that counts; preference data (chosen, rejected).
std::optional<ChatExample> read_chat_example(const JinjaValue& object, const std::string& where);

}  // namespace gxp
