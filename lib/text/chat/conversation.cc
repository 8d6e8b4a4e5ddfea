#include "lib/text/chat/conversation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/text/chat/members.h"
#include "lib/text/chat/message_spellings.h"

namespace gxp {
namespace {

JinjaDict message_of(std::string_view role, std::string_view content) {
  JinjaDict message;
  message.set("role", role);
  message.set("content", content);
  return message;
}

void refuse_media(const JinjaDict& object, const std::string& place) {
  for (const char* name : {"image", "images", "video", "videos", "audio", "audios"})
    if (const JinjaValue* value = find_member(object, name); value != nullptr && is_true(*value))
      fail(ErrorKind::kCorrupt, "{} has '{}'; only text is supported", place, name);
}

// What other programs read beside the messages, and what would be left out in silence.
void refuse_unread(const JinjaDict& object, const std::string& where) {
  const auto refuse = [&](const char* name, std::string_view remedy) {
    fail(ErrorKind::kCorrupt, "{}: there is '{}', which gxp does not read; {}", where, name,
         remedy);
  };
  refuse_media(object, where + ": the example");
  for (const char* name : {"system_prompt", "system_message"})
    if (const JinjaValue* value = find_member(object, name); value != nullptr && is_true(*value))
      refuse(name, "name it system");
  for (const char* name : {"label", "kto_tag"})
    if (const JinjaValue* value = find_member(object, name); value != nullptr && value->is_bool())
      refuse(name, "every answer is learned: leave out the bad ones, and this field");
  for (const char* name : {"weight", "loss_weight", "sample_weight"})
    if (const JinjaValue* value = find_member(object, name);
        value != nullptr && value->number().value_or(1) != 1)
      refuse(name, "examples of different weights belong into files with data.weights");
}

class ExampleReader {
 public:
  ExampleReader(const JinjaDict& object, const std::string& where)
      : object_(object), where_(where) {}

  Conversation read_messages(const JinjaValue& messages) {
    add_system();
    add_all(messages, true);
    return finish();
  }

  Conversation read_prompt_and_completion(const JinjaValue& prompt, const JinjaValue& completion) {
    add_system();
    add_all(prompt, false);
    add_all(completion, true, false);
    return finish();
  }

  Conversation read_alpaca() {
    const JinjaValue* history = find_member(object_, "history");
    if (history != nullptr && is_true(*history))
      fail(ErrorKind::kCorrupt, "{}: Alpaca examples with a history are not supported", where_);
    const JinjaValue* context = find_member(object_, "context");
    if (context != nullptr && is_true(*context))
      fail(ErrorKind::kCorrupt,
           "{}: context is no field of Alpaca's; name it input if it belongs to the instruction",
           where_);
    add_system();
    std::string question = text_member(object_, "instruction", where_);
    if (find_member(object_, "input") != nullptr) {
      const std::string& input = text_member(object_, "input", where_);
      if (!input.empty()) question += "\n\n" + input;
    }
    add(message_of("user", question), false);
    add(message_of("assistant", text_member(object_, "output", where_)), true);
    return finish();
  }

 private:
  // A system message beside the others.
  void add_system() {
    if (find_member(object_, "system") == nullptr) return;
    const std::string& system = text_member(object_, "system", where_);
    if (!system.empty()) add(message_of("system", system), false);
  }

  void add_all(const JinjaValue& messages, bool count, bool is_first = true) {
    const JinjaList* list = messages.list();
    if (list == nullptr)
      fail(ErrorKind::kCorrupt, "{}: a list of messages was expected, not a {}", where_,
           kind_of(messages));
    if (list->items.empty()) fail(ErrorKind::kCorrupt, "{}: there are no messages", where_);
    const bool has_system = trained_.size() == 1 && is_first;
    for (const JinjaValue& message : list->items) {
      if (message.dict() == nullptr)
        fail(ErrorKind::kCorrupt, "{}: {} is a {}, not an object", where_, place(),
             kind_of(message));
      add(spellings_.known(*message.dict(), where_ + ": " + place()), count);
      if (has_system && trained_.size() == 2 && role_of(list_.items[1]) == "system" &&
          role_of(list_.items[0]) == "system")
        fail(ErrorKind::kCorrupt,
             "{}: there is a system message both among the messages and beside them", where_);
    }
  }

  [[nodiscard]] std::string place() const { return fmt::format("message {}", trained_.size() + 1); }

  static const std::string& role_of(const JinjaValue& message) {
    return *message.dict()->find("role")->text();
  }

  void check_content(const JinjaDict& message, const std::string& role) {
    const JinjaValue* content = find_member(message, "content");
    if (content == nullptr) {
      if (role == "assistant" && find_member(message, "tool_calls") != nullptr) return;
      fail(ErrorKind::kCorrupt, "{}: {} has no content", where_, place());
    }
    if (content->text() != nullptr) return;
    if (content->list() == nullptr || content->list()->items.empty())
      fail(ErrorKind::kCorrupt, "{}: the content of {} is neither a text nor a list of parts",
           where_, place());
    for (const JinjaValue& part : content->list()->items) check_part(part);
  }

  void check_part(const JinjaValue& part) {
    const JinjaValue* type = part.dict() == nullptr ? nullptr : part.dict()->find("type");
    const std::string kind = type == nullptr || type->text() == nullptr ? "" : *type->text();
    const JinjaValue* text = kind == "text" ? part.dict()->find("text") : nullptr;
    if (text == nullptr || text->text() == nullptr)
      fail(ErrorKind::kCorrupt, "{}: {} has a part of type '{}'; only text is supported", where_,
           place(), kind);
  }

  // OpenAI's weight of a message: 0 or 1.
  bool read_weight(const JinjaDict& message, const std::string& role) {
    const JinjaValue* weight = find_member(message, "weight");
    const bool is_assistant = role == "assistant";
    if (weight == nullptr) return is_assistant;
    const std::optional<double> value = weight->number();
    if (!value || (*value != 0 && *value != 1) || (*value == 1 && !is_assistant))
      fail(ErrorKind::kCorrupt,
           "{}: the weight of {} is not supported: 0 and, of an assistant, 1 are", where_, place());
    return *value == 1;
  }

  // Other programs' names for what the weight says.
  void refuse_other_weights(const JinjaDict& message) {
    for (const char* name : {"train", "train_detail", "training", "training_detail", "loss", "mask",
                             "masked", "loss_mask", "loss_weight"})
      if (find_member(message, name) != nullptr)
        fail(
            ErrorKind::kCorrupt,
            "{}: {} has '{}', which gxp does not read; its weight, 0 or 1, tells whether it counts",
            where_, place(), name);
  }

  void add(JinjaDict message, bool count) {
    const std::string& role = text_member(message, "role", where_ + ", " + place());
    refuse_other_weights(message);
    refuse_media(message, where_ + ": " + place());
    check_content(message, role);
    const bool counts = read_weight(message, role) && count;
    list_.items.emplace_back(std::move(message));
    trained_.push_back(counts);
  }

  Conversation finish() {
    if (std::ranges::find(trained_, true) == trained_.end())
      fail(ErrorKind::kCorrupt,
           "{}: no message of an assistant is to be learned, so no token has a loss", where_);
    Conversation conversation{
        .messages = std::move(list_), .trained = std::move(trained_), .variables = {}};
    JinjaList tools = spellings_.known_tools(object_, where_);
    if (!tools.items.empty()) conversation.variables.set("tools", std::move(tools));
    if (const JinjaValue* documents = find_member(object_, "documents")) {
      if (documents->list() == nullptr)
        fail(ErrorKind::kCorrupt, "{}: documents is a {}, not a list", where_, kind_of(*documents));
      if (!documents->list()->items.empty()) conversation.variables.set("documents", *documents);
    }
    add_variables(conversation.variables);
    return conversation;
  }

  void add_variables(JinjaDict& variables) {
    const JinjaValue* more = find_member(object_, "chat_template_kwargs");
    if (more == nullptr) return;
    if (more->dict() == nullptr)
      fail(ErrorKind::kCorrupt, "{}: chat_template_kwargs is a {}, not an object", where_,
           kind_of(*more));
    for (const auto& [name, value] : more->dict()->entries()) {
      if (name == "messages" || name == "add_generation_prompt")
        fail(ErrorKind::kCorrupt, "{}: chat_template_kwargs cannot have '{}'", where_, name);
      variables.set(name, value);
    }
  }

  const JinjaDict& object_;
  const std::string& where_;
  MessageSpellings spellings_;
  JinjaList list_;
  std::vector<bool> trained_;
};

ChatExample read_pair(const JinjaDict& object, const std::string& where) {
  const JinjaValue& prompt = *find_member(object, "prompt");
  const JinjaValue& completion = *find_member(object, "completion");
  const bool are_texts = prompt.text() != nullptr && completion.text() != nullptr;
  for (const char* name : {"label", "system"})
    if (find_member(object, name) != nullptr && (are_texts || name == std::string_view("label")))
      fail(ErrorKind::kCorrupt,
           "{}: there is a {} beside prompt and completion, which gxp does not use", where, name);
  if (are_texts)
    return {ChatKind::kPromptCompletion, PromptCompletion{*prompt.text(), *completion.text()}};
  if (prompt.text() != nullptr || completion.text() != nullptr)
    fail(ErrorKind::kCorrupt, "{}: prompt is a {} and completion a {}; both must be of one kind",
         where, kind_of(prompt), kind_of(completion));
  return {ChatKind::kPromptCompletionChat,
          ExampleReader(object, where).read_prompt_and_completion(prompt, completion)};
}

bool is_share_gpt(const JinjaValue& messages) {
  const JinjaList* list = messages.list();
  const JinjaDict* first = list == nullptr || list->items.empty() ? nullptr : list->items[0].dict();
  return first != nullptr && first->find("from") != nullptr;
}

[[noreturn]] void refuse_preferences(const JinjaDict& object, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& entry : object.entries()) names.push_back(entry.first);
  fail(ErrorKind::kCorrupt,
       "{}: it has the fields {}: preference pairs (chosen, rejected) are not for next-token "
       "training",
       where, joined(names, ", "));
}

}  // namespace

const std::vector<JinjaValue>& messages_of(const Conversation& conversation) {
  return conversation.messages.list()->items;
}

std::string_view words_for(ChatKind kind) {
  switch (kind) {
    case ChatKind::kMessages:
      return "chats, messages";
    case ChatKind::kConversations:
      return "chats, messages under the name conversations";
    case ChatKind::kShareGpt:
      return "chats, ShareGPT";
    case ChatKind::kAlpaca:
      return "Alpaca";
    case ChatKind::kPromptCompletion:
      return "prompt and completion";
    case ChatKind::kPromptCompletionChat:
      return "prompt and completion as messages";
  }
  return "";
}

std::optional<ChatExample> read_chat_example(const JinjaValue& object, const std::string& where) {
  if (object.dict() == nullptr) return std::nullopt;
  const JinjaDict& members = *object.dict();
  const auto has = [&](std::string_view key) { return find_member(members, key) != nullptr; };
  if (has("chosen") || has("rejected")) refuse_preferences(members, where);
  const bool is_plain = has("messages");
  const bool is_pair = has("prompt") && has("completion");
  const bool is_alpaca = has("instruction") && has("output");
  if (!is_plain && !has("conversations") && !is_pair && !is_alpaca) return std::nullopt;
  refuse_unread(members, where);
  if (is_plain || has("conversations")) {
    const JinjaValue& messages = *members.find(is_plain ? "messages" : "conversations");
    const ChatKind kind = is_share_gpt(messages) ? ChatKind::kShareGpt
                          : is_plain             ? ChatKind::kMessages
                                                 : ChatKind::kConversations;
    return ChatExample{kind, ExampleReader(members, where).read_messages(messages)};
  }
  if (is_pair) return read_pair(members, where);
  return ChatExample{ChatKind::kAlpaca, ExampleReader(members, where).read_alpaca()};
}

}  // namespace gxp
