#include "lib/text/chat/conversation.h"

#include <map>

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {
namespace {

std::optional<ChatExample> example(const std::string& json) {
  return read_chat_example(parse_jinja_json(json, "json"), "read data.jsonl, line 7");
}

// "system: System 0\nuser: ...", with * before what counts.
std::string words_for(const Conversation& conversation) {
  std::string text;
  for (size_t at_message = 0; at_message < conversation.trained.size(); ++at_message) {
    const JinjaValue& message = conversation.messages.list()->items[at_message];
    const JinjaValue& content = at(message, "content");
    const JinjaValue& words =
        content.list() != nullptr ? at(content.list()->items[0], "text") : content;
    text += fmt::format("{}{}: {}\n", conversation.trained[at_message] ? "*" : "",
                        *at(message, "role").text(), *words.text());
  }
  return text;
}

std::vector<std::string> conversations_of(const std::string& file, ChatKind kind) {
  std::vector<std::string> found;
  for (const JinjaValue& object : json_lines("examples/" + file)) {
    const std::optional<ChatExample> read = read_chat_example(object, file);
    REQUIRE(read.has_value());
    CHECK(read->kind == kind);
    found.push_back(words_for(std::get<Conversation>(read->content)));
  }
  return found;
}

const std::string kUser = R"({"role": "user", "content": "a"})";
const std::string kAssistant = R"({"role": "assistant", "content": "b"})";

}  // namespace

TEST_CASE("conversations are the same in each spelling", "[text]") {
  const std::vector<std::string> messages = conversations_of("messages.jsonl", ChatKind::kMessages);
  REQUIRE(messages.size() == 9);
  CHECK(messages[0].starts_with("system: System 0\nuser: Question 0.0: "));
  CHECK(messages[0].find("\n*assistant: Answer 0.0: ") != std::string::npos);
  CHECK(conversations_of("sharegpt.jsonl", ChatKind::kShareGpt) == messages);
  CHECK(conversations_of("conversations_role_content.jsonl", ChatKind::kConversations) == messages);
  CHECK(conversations_of("content_parts.jsonl", ChatKind::kMessages) == messages);
}

TEST_CASE("of a prompt and a completion in messages the completion alone counts", "[text]") {
  for (const std::string& text :
       conversations_of("prompt_completion_chat.jsonl", ChatKind::kPromptCompletionChat)) {
    CHECK(std::ranges::count(text, '*') >= 1);
    CHECK(text.substr(text.rfind("*assistant")).find("user:") == std::string::npos);
    CHECK(text.find("*assistant") == text.rfind("*assistant"));
  }
}

TEST_CASE("a prompt and a completion in texts stay apart", "[text]") {
  for (const JinjaValue& object : json_lines("examples/prompt_completion.jsonl")) {
    const std::optional<ChatExample> read = read_chat_example(object, "file");
    REQUIRE(read.has_value());
    CHECK(read->kind == ChatKind::kPromptCompletion);
    CHECK(std::get<PromptCompletion>(read->content).prompt == *at(object, "prompt").text());
    CHECK(std::get<PromptCompletion>(read->content).completion == *at(object, "completion").text());
  }
}

TEST_CASE("an Alpaca example is a question and its answer", "[text]") {
  const std::vector<std::string> read = conversations_of("alpaca.jsonl", ChatKind::kAlpaca);
  REQUIRE(read.size() == 6);
  CHECK(read[0] == "user: Translate to French.\n\ncheese\n*assistant: fromage\n");
  CHECK(read[1].starts_with("user: Write a haiku.\n*assistant: "));
  CHECK(read[2] == "system: Be exact.\nuser: Add.\n\n1\n2\n*assistant: 3\n");
}

TEST_CASE("bad examples are refused with the reason and the place", "[text]") {
  const std::map<std::string, std::string> kBad = {
      {R"({"messages": []})", "there are no messages"},
      {R"({"messages": "x"})", "a list of messages was expected, not a text"},
      {R"({"messages": [3]})", "message 1 is a integer, not an object"},
      {R"({"messages": [{"role": "user"}]})", "message 1 has no content"},
      {R"({"messages": [{"content": "x"}]})", "message 1: role is missing"},
      {R"({"messages": [{"role": 1, "content": "x"}]})",
       "message 1: role is a integer, not a text"},
      {R"({"messages": [{"role": "user", "content": 1}]})",
       "the content of message 1 is neither a text nor a list"},
      {R"({"messages": [{"role": "user", "content": []}]})", "the content of message 1 is neither"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "a part of type 'image_url'; only text is supported"},
      {R"({"messages": [{"role": "user", "content": "only a question"}]})", "no token has a loss"},
      {R"({"messages": [{"role": "assistant", "content": "x", "weight": 0}]})",
       "no token has a loss"},
      {R"({"messages": [{"role": "assistant", "content": "x", "weight": 0.5}]})",
       "the weight of message 1 is not supported"},
      {R"({"messages": [)" + kUser + "," + kAssistant + R"(], "tools": "x"})",
       "read data.jsonl, line 7: tools"},
      {R"({"messages": [{"role": "system", "content": "x"}, )" + kAssistant +
           R"(], "system": "y"})",
       "both among the messages and beside them"},
      {R"({"conversations": [{"from": "judge", "value": "x"}]})",
       "message 1 is from 'judge', which is not known"},
      {R"({"conversations": [{"from": "human"}]})", "message 1 has no content"},
      {R"({"prompt": "x", "completion": [)" + kAssistant + "]}", "both must be of one kind"},
      {R"({"system": "s", "prompt": "x", "completion": "y"})",
       "a system beside prompt and completion"},
      {R"({"prompt": "x", "completion": "y", "label": false})",
       "there is 'label', which gxp does not read; every answer is learned"},
      {R"({"prompt": "x", "completion": "y", "label": 2})", "a label beside prompt and completion"},
      {R"({"messages": [)" + kAssistant + R"(], "kto_tag": false})", "there is 'kto_tag'"},
      {R"({"messages": [)" + kAssistant + R"(], "weight": 0.5})", "there is 'weight'"},
      {R"({"messages": [)" + kAssistant + R"(], "images": ["a.png"]})",
       "the example has 'images'; only text is supported"},
      {R"({"messages": [{"role": "user", "content": "x", "audio": "a.wav"}]})",
       "message 1 has 'audio'; only text is supported"},
      {R"({"system_prompt": "s", "conversations": [{"from": "gpt", "value": "x"}]})",
       "there is 'system_prompt', which gxp does not read; name it system"},
      {R"({"system": "s", "prompt": [{"role": "system", "content": "x"}], "completion": [)" +
           kAssistant + "]}",
       "both among the messages and beside them"},
      {R"({"messages": [{"role": "assistant", "content": "x", "loss_weight": 0}]})",
       "message 1 has 'loss_weight', which gxp does not read; its weight"},
      {R"({"messages": [{"role": "assistant", "content": "x", "train": false}]})",
       "message 1 has 'train', which gxp does not read; its weight"},
      {R"({"conversations": [{"from": "gpt", "value": "x", "content": "y"}]})",
       "message 1 has both from or value and role or content"},
      {R"({"conversations": [{"from": "gpt", "role": "user", "value": "x"}]})",
       "message 1 has both from or value and role or content"},
      {R"({"conversations": [{"from": "function_call", "value": "get the weather"}]})",
       "message 1: "},
      {R"({"conversations": [{"from": "function_call", "value": "{\"name\": \"f\"}"}]})",
       "message 1 has a call whose arguments are no object"},
      {R"({"conversations": [{"from": "function_call", "value": "[3]"}]})",
       "message 1 has a call that is a integer"},
      {R"({"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "x"}}]})",
       "message 1: arguments of a call"},
      {R"({"messages": [{"role": "function_call", "content": null}]})",
       "message 1: content is missing"},
      {R"({"messages": [{"role": "assistant", "function_call": {"arguments": {}}}]})",
       "message 1: name is missing"},
      {R"({"messages": [{"role": "assistant", "function_call": {}, "tool_calls": []}]})",
       "message 1 has both function_call and tool_calls"},
      {R"({"messages": [)" + kUser + "," + kAssistant + R"(], "tools": [], "functions": []})",
       "there are both tools and functions"},
      {R"({"messages": [)" + kUser + "," + kAssistant + R"(], "functions": {}})",
       "functions is a dict, not a list"},
      {R"({"instruction": "x", "output": 3})", "output is a integer, not a text"},
      {R"({"instruction": "x", "output": "y", "history": [["a", "b"]]})",
       "a history are not supported"},
      {R"({"prompt": "p", "chosen": "c", "rejected": "r"})",
       "it has the fields prompt, chosen, rejected: preference pairs"},
  };
  for (const auto& [json, words] : kBad) {
    const Caught caught = error_of([&] { example(json); });
    CAPTURE(json, caught.message);
    CHECK(caught.kind == ErrorKind::kCorrupt);
    CHECK(caught.says(words));
    CHECK(caught.says("read data.jsonl, line 7"));
  }
}

TEST_CASE("other spellings of calls and tools are those that templates know", "[text]") {
  const std::string call =
      R"({"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]})";
  const std::string tool = R"("tools": [{"type": "function", "function": {"name": "f"}}])";
  const auto known = [&](const std::string& tools) {
    return R"({"messages": [)" + kUser + ", " + call + R"(, {"role": "tool", "content": "r"}, )" +
           kAssistant + "]" + tools + "}";
  };
  const std::string share_gpt =
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": "CALL"},
          {"from": "observation", "value": "r"}, {"from": "gpt", "value": "b"}])";
  const auto with_call = [&](const std::string& json) {
    return std::string(share_gpt).replace(share_gpt.find("CALL"), 4, json);
  };
  const std::string open_ai = R"({"messages": [)" + kUser +
                              R"(, {"role": "assistant", "content": null,
      "function_call": {"name": "f", "arguments": "{\"x\": 1}"}}, {"role": "function", "content": "r"}, )" +
                              kAssistant + "]";
  const std::string plain = R"({\"name\": \"f\", \"arguments\": {\"x\": 1}})";
  const std::string in_text = R"({\"name\": \"f\", \"arguments\": \"{\\\"x\\\": 1}\"})";
  const std::map<std::string, std::string> kSame = {
      {with_call(plain) + "}", known("")},
      {with_call("[" + plain + "]") + R"(, "tools": ""})", known("")},
      {with_call(in_text) + R"(, "tools": "[{\"name\": \"f\"}]"})", known(", " + tool)},
      {with_call(plain) + ", " + tool + "}", known(", " + tool)},
      {open_ai + "}", known("")},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "function_call", "content": ")" +
           plain + R"("}, {"role": "observation", "content": "r"}, )" + kAssistant + "]}",
       known("")},
      {open_ai + R"(, "functions": [{"name": "f"}]})", known(", " + tool)},
      {R"({"messages": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
          {"role": "assistant", "content": [{"type": "output_text", "text": "b"}]}], "tools": "[{\"name\": \"g\"}]"})",
       R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]},
          {"role": "assistant", "content": [{"type": "text", "text": "b"}]}], "tools": [{"name": "g"}]})"},
  };
  for (const auto& [json, same] : kSame) {
    CAPTURE(json);
    const Conversation found = std::get<Conversation>(example(json)->content);
    const Conversation expected = std::get<Conversation>(example(same)->content);
    const auto without_null = [](std::string text) {
      const std::string null = "\"content\": null, ";
      const size_t at_null = text.find(null);
      return at_null == text.npos ? text : text.erase(at_null, null.size());
    };
    CHECK(without_null(to_python_json(found.messages, {})) ==
          to_python_json(expected.messages, {}));
    CHECK(to_python_json(found.variables, {}) == to_python_json(expected.variables, {}));
    CHECK(found.trained == expected.trained);
  }
}

TEST_CASE("objects without members of chat data are no examples", "[text]") {
  for (const char* json : {R"({"text": "x"})", "{}", R"({"prompt": "x"})",
                           R"({"messages": null, "text": "x"})", "[1]"})
    CHECK_FALSE(example(json).has_value());
}

TEST_CASE("what says nothing beside messages is no error", "[text]") {
  const auto read = example(R"({"system_prompt": "", "images": [], "weight": 1, "label": "news",
      "image": null, "prompt": "a", "messages": [)" +
                            kUser + "," + kAssistant + "]}");
  CHECK(words_for(std::get<Conversation>(read->content)) == "user: a\n*assistant: b\n");
}

TEST_CASE("tools, a system text and weights beside messages are kept", "[text]") {
  const auto read = example(
      R"({"system": "s", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b", "weight": 0},
      {"from": "tool", "value": "c"}, {"from": "model", "value": "d", "extra": 1}], "tools": [{"x": 1}], "chat_template_kwargs": {"k": true}})");
  const Conversation& conversation = std::get<Conversation>(read->content);
  CHECK(words_for(conversation) == "system: s\nuser: a\nassistant: b\ntool: c\n*assistant: d\n");
  CHECK(at(conversation.messages.list()->items[4], "extra").integer() == 1);
  CHECK(to_python_json(conversation.variables, {}) == R"({"tools": [{"x": 1}], "k": true})");
  const auto pair = example(R"({"system": "s", "prompt": [)" + kUser + R"(], "completion": [)" +
                            kAssistant + "]}");
  CHECK(words_for(std::get<Conversation>(pair->content)) == "system: s\nuser: a\n*assistant: b\n");
}

}  // namespace gxp
