// Templates that write an answer in another way if more follows, as those of well-known families do.
// Their tags say which part is the assistant's; without the tags the same has to be found.
#include "lib/text/chat/answer_spans.h"

#include <map>

#include "lib/text/chat/training_text.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {
namespace {

const std::string kPrompt = "{% if add_generation_prompt %}";

const std::map<std::string, std::string> kTemplates = {
    // Earlier reasoning is left out; the last answer has a block for it, though it may be empty.
    {"reasoning of the last answer",
     "{% set ns = namespace(last=0) %}{% for m in messages if m.role == 'user' %}{% set ns.last = "
     "m %}"
     "{% endfor %}{% set ns.after = false %}{% for m in messages %}{% if m == ns.last %}"
     "{% set ns.after = true %}{% endif %}{% set c = m.content.split('</think>')[-1].lstrip('\n') "
     "%}"
     "{% set r = m.reasoning_content or "
     "(m.content.split('</think>')[0].split('<think>')[-1].strip('\n') "
     "if '</think>' in m.content else '') %}<s>{{ m.role }}\n{% if m.role == 'assistant' %}"
     "{% generation %}{% if ns.after and (loop.last or r) %}<think>\n{{ r }}\n</think>\n\n{% endif "
     "%}"
     "{{ c }}{% for t in m.tool_calls %}<call>{{ t.function|tojson }}{% endfor %}<e>\n"
     "{% endgeneration %}{% else %}{{ m.content }}<e>\n{% endif %}{% endfor %}" +
         kPrompt + "<s>assistant\n{% endif %}"},
    // The prompt begins to reason; answers are rendered without.
    {"reasoning in the prompt alone",
     "{% set ns = namespace(tool=false) %}{{ bos_token }}{% for m in messages if m.role == "
     "'system' %}"
     "{{ m.content }}{% endfor %}{% for m in messages %}{% if m.role == 'user' %}"
     "{% set ns.tool = false %}<|User|>{{ m.content }}{% elif m.role == 'assistant' %}"
     "{% if ns.tool %}</outs>{% set ns.tool = false %}{% else %}<|Assistant|>{% endif %}"
     "{% generation %}{{ m.content.split('</think>')[-1] }}"
     "{% for t in m.tool_calls %}<|call|>{{ t.function.name }}{% endfor %}<|eos|>{% endgeneration "
     "%}"
     "{% elif m.role == 'tool' %}{% set ns.tool = true %}<outs>{{ m.content }}{% endif %}{% endfor "
     "%}"
     "{% if ns.tool %}</outs>{% elif add_generation_prompt %}<|Assistant|><think>\n{% endif %}"},
    {"another reasoning in the prompt",
     "{{ messages|length }}{% for m in messages %}<s>{{ m.role }}\n{% if m.role == 'assistant' %}"
     "<think>{{ '\n' if m.reasoning }}{% generation %}{{ 'è' ~ m.reasoning if m.reasoning "
     "}}</think>"
     "{{ m.content }}{% for t in m.tool_calls %}<call>{{ t.function|tojson }}{% endfor %}<e>\n"
     "{% endgeneration %}{% else %}{{ m.content }}<e>\n{% endif %}{% endfor %}" +
         kPrompt + "<s>assistant\n<think>\né{% endif %}"},
    {"an end token instead of a prompt",
     "{% for m in messages %}{{ '<|' + m.role + '|>\n' }}{% if m.role == 'assistant' %}"
     "{% generation %}{{ m.content }}{{ m.tool_calls|tojson if m.tool_calls }}<|end|>\n{% "
     "endgeneration %}"
     "{% else %}{{ m.content + '<|end|>\n' }}{% endif %}{% endfor %}" +
         kPrompt +
         "<|assistant|>\n{% elif messages[-1].role == 'assistant' %}{% generation %}<|endoftext|>"
         "{% endgeneration %}{% else %}<|endoftext|>{% endif %}"},
    {"a system's text in the last question",
     "{% set users = messages|selectattr('role', 'equalto', 'user')|list %}{% for m in messages %}"
     "{% if m.role == 'user' %}[INST] {% if m == users[-1] and messages[0].role == 'system' %}"
     "{{ messages[0].content + '\n\n' }}{% endif %}{{ m.content }}[/INST]{% elif m.role == "
     "'assistant' %}"
     "{% generation %} {{ m.content|trim }}{{ m.tool_calls|tojson if m.tool_calls }}</s>{% "
     "endgeneration %}"
     "{% elif m.role == 'tool' %}[R]{{ m.content }}[/R]{% endif %}{% endfor %}"},
    // Channels; the last answer ends in another token.
    {"channels and two end tokens",
     "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}{% generation %}"
     "{% if m.tool_calls %} to={{ m.tool_calls[0].function.name }}<|message|>"
     "{{ m.tool_calls[0].function.arguments|tojson }}<|call|>{% else %}"
     "{% if loop.last and m.thinking %}<|channel|>analysis<|message|>{{ m.thinking }}<|end|>"
     "<|start|>assistant{% endif %}<|channel|>final<|message|>{{ m.content }}"
     "{{ '<|return|>' if loop.last else '<|end|>' }}{% endif %}{% endgeneration %}{% else "
     "%}<|message|>"
     "{{ m.content }}<|end|>{% endif %}{% endfor %}" +
         kPrompt + "<|start|>assistant{% endif %}"},
    {"the prompt in the loop",
     "{{ messages|length }}{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
     "{% generation %}{{ m.content }}{{ m.tool_calls|tojson if m.tool_calls }}</>{% endgeneration "
     "%}"
     "{% else %}{{ m.content }}</>{% endif %}{% if loop.last and add_generation_prompt "
     "%}<assistant>"
     "{% endif %}{% endfor %}"},
};

const std::vector<std::string> kChats = {
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "<b>"}])",
    R"([{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])",
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "a"},
        {"role": "assistant", "content": "a"}, {"role": "user", "content": "a"}])",
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "<think>\nso\n</think>\n\nd"}])",
    R"([{"role": "system", "content": "assistant"}, {"role": "user", "content": "é"}, {"role": "assistant", "content": ""},
        {"role": "user", "content": ""}, {"role": "assistant", "content": "日本\n"}])",
    R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
        {"role": "tool", "content": "r"}, {"role": "assistant", "content": "done"}, {"role": "user", "content": "q"},
        {"role": "assistant", "content": "x"}])",
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "assistant", "content": "c"}])",
};
const std::string kReasoning =
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "reasoning": "é1"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d", "reasoning": "é2"}])";

std::string without_tags(std::string source) {
  for (const std::string tag : {"{% generation %}", "{% endgeneration %}"})
    for (size_t at = source.find(tag); at != source.npos; at = source.find(tag))
      source.erase(at, tag.size());
  return source;
}

TrainingText trained_text(const std::string& source, const std::string& messages) {
  JinjaDict tokens;
  tokens.set("bos_token", "<s>");
  const auto read =
      read_chat_example(parse_jinja_json(R"({"messages": )" + messages + "}", "json"), "json");
  return render_for_training(ChatTemplate(source, "template", tokens, 0),
                             std::get<Conversation>(read->content), "json");
}

// Those that touch as one.
std::vector<ByteSpan> merged(const std::vector<ByteSpan>& spans) {
  std::vector<ByteSpan> all;
  for (const ByteSpan& span : spans)
    if (!all.empty() && all.back().end == span.begin) {
      all.back().end = span.end;
    } else {
      all.push_back(span);
    }
  return all;
}

}  // namespace

TEST_CASE("what a loop over the messages prints is the assistant's as tags would say it",
          "[text]") {
  const std::string name = GENERATE_COPY(
      map<std::string>([](const auto& entry) { return entry.first; }, from_range(kTemplates)));
  CAPTURE(name);
  const std::string& source = kTemplates.at(name);
  std::vector<std::string> chats = kChats;
  if (source.find("reasoning") != source.npos || source.find("thinking") != source.npos)
    chats.push_back(kReasoning);
  for (const std::string& messages : chats) {
    CAPTURE(messages);
    const TrainingText tagged = trained_text(source, messages);
    const TrainingText found = trained_text(without_tags(source), messages);
    CHECK(found.text == tagged.text);
    CHECK(words_for(merged(found.trained)) == words_for(merged(tagged.trained)));
  }
}

TEST_CASE("an answer whose place cannot be told is refused with the reason", "[text]") {
  const std::string count = "{{ messages|length }}";  // so that no rendering is a prefix of another
  const std::map<std::string, std::string> kRefused = {
      {"{% for i in range(messages|length) %}<{{ messages[i].content }}>{% endfor %}",
       "no loop over the messages prints it"},
      {"{% set all %}{% for m in messages %}<{{ m.content }}>{% endfor %}{% endset %}{{ all }}",
       "no loop over the messages prints it"},
      {"{% for m in messages %}{{ m.role }}{% endfor %}{% for m in messages %}<{{ m.content }}>"
       "{% endfor %}",
       "more than one loop prints it"},
      {"{% for m in messages %}{{ m.role }}{% endfor %}"
       "{{ messages|map(attribute='content')|join|tojson }}",
       "the text of another message is printed with it"},
      {"{% for m in messages %}{{ messages[-1].content }}<{{ m.content }}>{% endfor %}",
       "its text changes what is printed for others"},
      {"{% for m in messages if m.role == 'assistant' %}{{ messages[0].content }}<{{ m.content }}>"
       "{% endfor %}",
       "the text of another message is printed with it"},
      {"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}" + kPrompt +
           "<model>{% endif %}",
       "it does not begin with the generation prompt"},
  };
  for (const auto& [source, why] : kRefused) {
    const Caught caught = error_of([&] { trained_text(count + source, kChats[0]); });
    CAPTURE(source, caught.message);
    CHECK(caught.kind == ErrorKind::kCorrupt);
    CHECK(caught.says("json: which part is message 2, the assistant's, cannot be told: " + why));
  }
}

}  // namespace gxp
