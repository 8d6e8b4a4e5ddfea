#include "lib/text/chat/training_text.h"

#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {
namespace {

const std::string kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if "
    "add_generation_prompt %}<assistant>{% endif %}";
const std::string kTagged =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ "
    "m.content }}</>{% endgeneration %}"
    "{% else %}{{ m.content }}</>{% endif %}{% endfor %}";

TrainingText trained(const std::string& source, const std::string& json) {
  const std::optional<ChatExample> read = read_chat_example(parse_jinja_json(json, "json"), "json");
  const ChatTemplate chat(source, "template", {}, 0);
  return render_for_training(chat, std::get<Conversation>(read->content), "json, line 1");
}

// What counts, each between bars.
std::string trained_parts(const std::string& source, const std::string& json) {
  const TrainingText text = trained(source, json);
  std::string parts = "|";
  for (const ByteSpan& span : text.trained)
    parts += text.text.substr(span.begin, span.end - span.begin) + "|";
  return parts;
}

}  // namespace

TEST_CASE("of several answers those that count are trained", "[text]") {
  const std::string source = GENERATE_COPY(from_range(std::vector<std::string>{kPlain, kTagged}));
  CHECK(
      trained_parts(
          source,
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0},
      {"role": "user", "content": "c"}, {"role": "assistant", "content": "é"}, {"role": "user", "content": "d"}]})") ==
      "|é</>|");
  CHECK(
      trained_parts(
          source,
          R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
      "completion": [{"role": "assistant", "content": "d"}]})") == "|d</>|");
}

TEST_CASE("what a template would leave out in silence is refused", "[text]") {
  const auto error = [](const std::string& source, const std::string& json) {
    return error_of([&] { trained(source, json); }).message;
  };
  const std::string answer = R"({"role": "assistant", "content": "b"})";
  CHECK(error(kPlain, R"({"messages": [{"role": "judge", "content": "a"}, )" + answer + "]}")
            .find("the role 'judge' is unknown") != std::string::npos);
  CHECK(error(kPlain + "{# #}{% if 0 %}{{ 'judge' }}{% endif %}",
              R"({"messages": [{"role": "judge", "content": "a"}, )" + answer + "]}")
            .empty());
  // The name of a message's part is not the variable.
  CHECK(error(kPlain + "{{ messages[0]['tools'] }}",
              R"({"messages": [)" + answer + R"(], "tools": [{}]})")
            .find("has tools, which the template does not render") != std::string::npos);
  CHECK(error(kPlain, R"({"messages": [)" + answer + R"(], "tools": [{}]})")
            .find("has tools, which the template does not render") != std::string::npos);
  CHECK(error(kPlain, R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]})")
            .find("message 1 has tool_calls") != std::string::npos);
  CHECK(
      error(
          "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}",
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]})")
          .find("nothing of it that counts") != std::string::npos);
  const std::string of_parts =
      "{% for m in messages %}{{ m.role }}{% for p in m.content if p.type == 'text' %}{{ p.text }}"
      "{% endfor %}{% endfor %}";
  CHECK(error(of_parts, R"({"messages": [)" + answer + "]}")
            .find("message 1, of the role 'assistant', has a text") != std::string::npos);
  CHECK(error(kPlain, R"({"messages": [{"role": "system", "content": "a", "tools": "[]"}, )" +
                          answer + "]}")
            .find("message 1 has tools, which the template does not render") != std::string::npos);
  CHECK(error(kPlain, R"({"messages": [{"role": "assistant", "content": "b", "reasoning": "r"}]})")
            .find("has reasoning, which the template does not render") != std::string::npos);
}

TEST_CASE("a message that a template passes over is refused", "[text]") {
  const std::string source =
      "{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}{% elif m.role == "
      "'assistant' %}<a>{{ m.content.split('#')[-1] }}{% elif m.role == 'tool' %}"
      "{{ raise_exception('no') if m.content is string and m.content|length < 2 }}-{% endif %}"
      "{% endfor %}";
  const std::string answer = R"({"role": "assistant", "content": "think #b"})";
  const auto error = [&](const std::string& message) {
    return error_of([&] { trained(source, R"({"messages": [)" + message + ", " + answer + "]}"); })
        .message;
  };
  for (const char* role : {"developer", "function", "observation"}) {
    const std::string about = fmt::format("message 1, of the role '{}', has a text", role);
    for (const char* content : {R"("a")", R"([{"type": "text", "text": "a"}])", R"("think #b")"})
      CHECK(error(fmt::format(R"({{"role": "{}", "content": {}}})", role, content)).find(about) !=
            std::string::npos);
    CHECK(error(fmt::format(R"({{"role": "{}", "content": " "}})", role)).empty());
  }
  CHECK(error(R"({"role": "tool", "content": "ab"})").empty());  // looked at
  CHECK(error(R"({"role": "user", "content": "a"})").empty());
}

TEST_CASE("parts of a content are joined where a template does not look at them", "[text]") {
  const std::string json =
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "c"}]})";
  CHECK(trained(kPlain, json).text == "<user>a b</><assistant>c</>");
  const std::string parts =
      "{% for m in messages %}[{% if m.content is string %}{{ m.content }}{% else %}"
      "{% for p in m.content if p.type == 'text' %}({{ p.text }}){% endfor %}{% endif %}]{% endfor "
      "%}";
  CHECK(trained(parts, json).text == "[(a )(b)][c]");
}

TEST_CASE("a message's reasoning has all of its names, and null members are gone", "[text]") {
  const std::string source =
      "{% for m in messages %}{{ m|tojson }}{% endfor %}{{ tools is none }}{{ documents is none }}";
  const ChatTemplate chat(source, "template", {}, 0);
  const JinjaValue messages = parse_jinja_json(
      R"([{"role": "a", "reasoning": "r", "x": null}, {"thinking": "t", "reasoning_content": null}])",
      "json");
  CHECK(
      chat.render(messages, false).text ==
      R"({"thinking": "r", "role": "a", "reasoning": "r", "reasoning_content": "r"}{"thinking": "t", "reasoning_content": "t"}TrueTrue)");
}

TEST_CASE("a token counts if its bytes overlap what is trained", "[text]") {
  const std::vector<ByteSpan> trained = {{3, 5}, {8, 9}};
  const std::vector<ByteSpan> tokens = {{0, 3}, {2, 4},  {4, 5},  {5, 8}, {4, 5},
                                        {5, 9}, {8, 12}, {9, 12}, {4, 4}, {3, 3}};
  CHECK(trained_of(tokens, trained) == std::vector<uint8_t>{0, 1, 1, 0, 1, 1, 1, 0, 1, 0});
  CHECK(trained_of(tokens, {}) == std::vector<uint8_t>(10, 0));
  CHECK(trained_of({}, trained).empty());
}

}  // namespace gxp
