#include "lib/text/chat/message_spellings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/text/chat/members.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kShareGptRoles = {{
    {"system", "system"},
    {"human", "user"},
    {"user", "user"},
    {"gpt", "assistant"},
    {"assistant", "assistant"},
    {"chatgpt", "assistant"},
    {"bard", "assistant"},
    {"bing", "assistant"},
    {"model", "assistant"},
    {"function_call", "function_call"},
    {"tool", "tool"},
    {"observation", "tool"},
}};

// A text as the value that it is the JSON of.
JinjaValue read_json(const JinjaValue& value, const std::string& where) {
  return value.text() == nullptr ? value : parse_jinja_json(*value.text(), where);
}

JinjaDict tool_of(const JinjaValue& function) {
  JinjaDict tool;
  tool.set("type", "function");
  tool.set("function", function);
  return tool;
}

// {"name": ..., "arguments": ...} as a call of a tool.
JinjaDict call_of(const JinjaValue& value, const std::string& where) {
  if (value.dict() == nullptr)
    fail(ErrorKind::kCorrupt, "{} has a call that is a {}, not an object", where, kind_of(value));
  text_member(*value.dict(), "name", where);
  const JinjaValue* written = find_member(*value.dict(), "arguments");
  const JinjaValue arguments =
      written == nullptr ? JinjaValue() : read_json(*written, where + ": arguments of a call");
  if (arguments.dict() == nullptr)
    fail(ErrorKind::kCorrupt, "{} has a call whose arguments are no object", where);
  JinjaDict function = *value.dict();
  function.set("arguments", arguments);
  return tool_of(std::move(function));
}

// Those of ShareGPT by the names that templates know; all others stay.
JinjaDict with_role(const JinjaDict& message, const std::string& where) {
  if (find_member(message, "from") == nullptr) return message;
  if (message.find("role") != nullptr || message.find("content") != nullptr)
    fail(ErrorKind::kCorrupt, "{} has both from or value and role or content", where);
  const std::string& from = text_member(message, "from", where);
  const auto* const known =
      std::ranges::find(kShareGptRoles, from, [](const auto& row) { return row.first; });
  if (known == kShareGptRoles.end())
    fail(ErrorKind::kCorrupt,
         "{} is from '{}', which is not known; system, human, gpt, function_call, observation and "
         "tool are",
         where, from);
  JinjaDict renamed;
  for (const auto& [key, value] : message.entries()) {
    if (key == "from") {
      renamed.set("role", known->second);
    } else {
      renamed.set(key == "value" ? "content" : std::string_view(key), value);
    }
  }
  return renamed;
}

// Of the role function_call: the content is the JSON of a call, or of a list of them.
JinjaDict with_calls_of_content(const JinjaDict& message, const std::string& where) {
  const JinjaValue calls = read_json(JinjaValue(text_member(message, "content", where)), where);
  JinjaList list;
  for (const JinjaValue& call : calls.list() ? calls.list()->items : std::vector{calls})
    list.items.emplace_back(call_of(call, where));
  JinjaDict renamed;
  for (const auto& [key, value] : message.entries())
    if (key != "content") renamed.set(key, value);
  renamed.set("role", "assistant");
  renamed.set("tool_calls", std::move(list));
  return renamed;
}

JinjaDict with_tool_calls(const JinjaDict& message, const std::string& where) {
  if (find_member(message, "tool_calls") != nullptr)
    fail(ErrorKind::kCorrupt, "{} has both function_call and tool_calls", where);
  JinjaDict renamed;
  for (const auto& [key, value] : message.entries())
    if (key == "function_call") {
      renamed.set("tool_calls", JinjaList{.items = {call_of(value, where)}});
    } else {
      renamed.set(key, value);
    }
  return renamed;
}

JinjaList with_text_parts(const JinjaList& parts) {
  JinjaList known;
  for (const JinjaValue& part : parts.items) {
    const JinjaValue* type = part.dict() == nullptr ? nullptr : part.dict()->find("type");
    const std::string* name = type == nullptr ? nullptr : type->text();
    if (name != nullptr && (*name == "input_text" || *name == "output_text")) {
      JinjaDict text = *part.dict();
      text.set("type", "text");
      known.items.emplace_back(std::move(text));
    } else {
      known.items.push_back(part);
    }
  }
  return known;
}

}  // namespace

JinjaDict MessageSpellings::known(const JinjaDict& message, const std::string& where) {
  is_share_gpt_ = is_share_gpt_ || find_member(message, "from") != nullptr;
  JinjaDict known = with_role(message, where);
  const auto has_role = [&](const char* role) {
    const JinjaValue* found = known.find("role");
    return found != nullptr && are_equal(*found, role);
  };
  const bool is_call = has_role("function_call");
  if (is_call || find_member(known, "function_call") != nullptr) {
    known = is_call ? with_calls_of_content(known, where) : with_tool_calls(known, where);
    has_function_calls_ = true;
  }
  if (has_function_calls_ && (has_role("function") || has_role("observation")))
    known.set("role", "tool");
  const JinjaValue* content = known.find("content");
  if (content != nullptr && content->list() != nullptr)
    known.set("content", with_text_parts(*content->list()));
  return known;
}

JinjaList MessageSpellings::known_tools(const JinjaDict& object, const std::string& where) const {
  JinjaList tools;
  bool has_tools = false;
  for (const char* name : {"tools", "functions"}) {
    const JinjaValue* written = find_member(object, name);
    if (written == nullptr || are_equal(*written, "")) continue;
    const JinjaValue value = read_json(*written, where + ": " + name);
    if (value.list() == nullptr)
      fail(ErrorKind::kCorrupt, "{}: {} is a {}, not a list", where, name, kind_of(value));
    if (std::exchange(has_tools, true))
      fail(ErrorKind::kCorrupt, "{}: there are both tools and functions", where);
    for (const JinjaValue& tool : value.list()->items) {
      const bool is_bare = tool.dict() != nullptr && tool.dict()->find("function") == nullptr &&
                           tool.dict()->find("name") != nullptr;
      const bool is_function = name == std::string_view("functions") || (is_share_gpt_ && is_bare);
      tools.items.push_back(is_function ? JinjaValue(tool_of(tool)) : tool);
    }
  }
  return tools;
}

}  // namespace gxp
