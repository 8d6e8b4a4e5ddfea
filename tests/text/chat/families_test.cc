// Golden renderings of transformers, of every conversation with the template of every family.
#include "lib/text/chat/answer_spans.h"
#include "lib/text/chat/training_text.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {
namespace {

const std::vector<std::string> kFamilies = {"chatml", "chatml_one_line", "gemma",
                                            "llama3", "mistral",         "zephyr"};

ChatTemplate family_template(const std::string& family, const std::string& file) {
  const JinjaValue expected = json_sample("chat/" + family + "/expected.json");
  JinjaDict tokens;
  for (const char* name : {"bos_token", "eos_token"})
    if (!at(expected, name).is_none()) tokens.set(name, at(expected, name));
  return {text_sample("chat/" + family + "/" + file + ".jinja"), family, tokens, 0};
}

// Spans in characters as spans in bytes.
std::string in_bytes(const JinjaValue& spans, const std::string& text) {
  std::vector<size_t> places;
  for (size_t byte = 0; byte <= text.size(); ++byte)
    if (byte == text.size() || (static_cast<unsigned char>(text[byte]) & 0xc0) != 0x80)
      places.push_back(byte);
  std::vector<ByteSpan> list;
  for (const JinjaValue& span : spans.list()->items) {
    const auto place = [&](size_t end) {
      return uint32_t(places.at(size_t(*span.list()->items[end].integer())));
    };
    list.push_back({place(0), place(1)});
  }
  return words_for(list);
}

Conversation all_assistants(const JinjaValue& messages) {
  Conversation conversation{.messages = messages, .trained = {}, .variables = {}};
  for (const JinjaValue& message : messages.list()->items)
    conversation.trained.push_back(*at(message, "role").text() == "assistant");
  return conversation;
}

// Runs `check(messages, expected)` on each conversation.
template <class Check>
void for_each_conversation(const std::string& family, Check check) {
  const JinjaValue expected = json_sample("chat/" + family + "/expected.json");
  const std::vector<JinjaValue> chats = json_lines("chat/conversations.jsonl");
  const auto& results = at(expected, "conversations").list()->items;
  REQUIRE(results.size() == chats.size());
  for (size_t chat = 0; chat < chats.size(); ++chat) {
    CAPTURE(family, *at(chats[chat], "name").text());
    CHECK(*at(results[chat], "name").text() == *at(chats[chat], "name").text());
    check(at(chats[chat], "messages"), results[chat]);
  }
}

}  // namespace

TEST_CASE("a family's templates render conversations as transformers does", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  const std::string file = GENERATE("chat_template", "chat_template_generation");
  const ChatTemplate chat = family_template(family, file);
  for_each_conversation(family, [&](const JinjaValue& messages, const JinjaValue& expected) {
    ChatRendering output;
    const Caught caught = error_of([&] { output = chat.render(messages, false); });
    if (const JinjaValue* error = expected.dict()->find("error")) {
      CHECK(caught.kind == ErrorKind::kCorrupt);
      CHECK(caught.says(*error->text()));
      return;
    }
    CHECK(caught.message.empty());
    CHECK(output.text == *at(expected, "rendered").text());
    CHECK(chat.render(messages, true).text ==
          output.text + *at(expected, "generation_prompt").text());
    const bool has_tags = file == "chat_template_generation";
    CHECK(words_for(output.generation) ==
          (has_tags ? in_bytes(at(expected, "generation_spans"), output.text) : ""));
  });
}

TEST_CASE("what counts of a conversation is what its tags or its prefixes say", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  const std::string file = GENERATE("chat_template", "chat_template_generation");
  const ChatTemplate chat = family_template(family, file);
  for_each_conversation(family, [&](const JinjaValue& messages, const JinjaValue& expected) {
    TrainingText text;
    const Caught caught = error_of(
        [&] { text = render_for_training(chat, all_assistants(messages), "chats, line 1"); });
    CHECK(caught.kind.has_value() == (expected.dict()->find("error") != nullptr));
    if (caught.kind) {
      CHECK(caught.says("chats, line 1: "));
      return;
    }
    // Without prefixes, the loop over the messages says what the tags do.
    const bool has_prefixes = file == "chat_template" && !at(expected, "prefix_spans").is_none();
    const std::string spans = has_prefixes ? "prefix_spans" : "generation_spans";
    CHECK(text.text == *at(expected, "rendered").text());
    CHECK(words_for(text.trained) == in_bytes(at(expected, spans), text.text));
  });
}

TEST_CASE("a template's loop over the messages says the same as its prefixes", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  const ChatTemplate chat = family_template(family, "chat_template");
  for_each_conversation(family, [&](const JinjaValue& messages, const JinjaValue& expected) {
    if (expected.dict()->find("error") != nullptr) return;
    const Conversation conversation = all_assistants(messages);
    const ChatRendering rendering = chat.render(messages, false);
    const auto prefixes = find_prefix_spans(chat, conversation, rendering);
    CHECK(prefixes.has_value() == !at(expected, "prefix_spans").is_none());
    if (prefixes)
      CHECK(words_for(find_loop_spans(chat, conversation, rendering)) == words_for(*prefixes));
  });
}

TEST_CASE("bad lines of a file of chats are refused, by the reader or by the template", "[text]") {
  const std::string family = GENERATE(from_range(kFamilies));
  const ChatTemplate chat = family_template(family, "chat_template_generation");
  std::string refused;
  for (const JinjaValue& line : json_lines("examples/messages_bad.jsonl")) {
    const Caught caught = error_of([&] {
      const std::optional<ChatExample> read = read_chat_example(line, "line");
      render_for_training(chat, std::get<Conversation>(read.value().content), "line");
    });
    refused += caught.kind ? 'x' : '-';
  }
  // Line 1 has a system message, which gemma's template refuses.
  CHECK(refused == (family == "gemma" ? "xxxxxx" : "-xxxxx"));
}

TEST_CASE("a template's generation prompt follows a user's message", "[text]") {
  CHECK(family_template("zephyr", "chat_template").prompt("Hi") ==
        "<|user|>\nHi</s>\n<|assistant|>\n");
  CHECK(family_template("mistral", "chat_template").prompt("Hi") == "<s>[INST] Hi[/INST]");
}

}  // namespace gxp
