#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "lib/text/jinja/function.h"
#include "lib/text/jinja/python_text.h"
#include "lib/text/jinja/text_format.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

const std::string& text_of(const JinjaCall& call) { return *call.subject.text(); }

std::optional<std::string_view> text_or_none(const JinjaArguments& arguments, size_t place) {
  if (arguments[place] == nullptr || arguments[place]->is_none()) return std::nullopt;
  return arguments.text(place);
}

template <Sides sides>
JinjaValue strip(const JinjaCall& call, const JinjaArguments& arguments) {
  return stripped(text_of(call), sides, text_or_none(arguments, 0));
}

JinjaValue list_of(const std::vector<std::string_view>& parts) {
  JinjaList list;
  for (const std::string_view part : parts) list.items.emplace_back(part);
  return list;
}

template <bool from_right>
JinjaValue split(const JinjaCall& call, const JinjaArguments& arguments) {
  return list_of(split_text(text_of(call), {.separator = text_or_none(arguments, 0),
                                            .limit = arguments.integer(1, -1),
                                            .from_right = from_right}));
}

JinjaValue split_lines(const JinjaCall& call, const JinjaArguments&) {
  return list_of(lines_of(text_of(call)));
}

template <std::string (*change)(std::string_view)>
JinjaValue change_letters(const JinjaCall& call, const JinjaArguments&) {
  return change(text_of(call));
}

// One text, or a tuple of those that may match.
template <bool at_end>
JinjaValue has_affix(const JinjaCall& call, const JinjaArguments& arguments) {
  const auto matches = [&](std::string_view affix) {
    return at_end ? text_of(call).ends_with(affix) : text_of(call).starts_with(affix);
  };
  const JinjaList* choices = arguments[0]->list();
  if (choices == nullptr || choices->kind != JinjaListKind::kTuple)
    return matches(arguments.text(0));
  return std::ranges::any_of(choices->items, [&](const JinjaValue& choice) {
    if (choice.text() == nullptr)
      jinja_fail("a text was expected in a tuple, not a {}", kind_of(choice));
    return matches(*choice.text());
  });
}

template <bool at_end>
JinjaValue remove_affix(const JinjaCall& call, const JinjaArguments& arguments) {
  std::string_view text = text_of(call);
  const std::string_view affix = arguments.text(0);
  if (at_end ? text.ends_with(affix) : text.starts_with(affix))
    (at_end ? text.remove_suffix(affix.size()) : text.remove_prefix(affix.size()));
  return text;
}

JinjaValue replace_part(const JinjaCall& call, const JinjaArguments& arguments) {
  const std::string& text = text_of(call);
  const std::string_view old = arguments.text(0);
  const std::string_view part = arguments.text(1);
  int64_t limit = arguments.integer(2, -1);
  if (old.empty()) jinja_fail("to replace an empty text is not supported");
  call.rendering.count_bytes(text.size());
  std::string result;
  size_t begin = 0;
  for (size_t at = 0; (at = text.find(old, begin)) != std::string::npos && limit != 0; --limit) {
    call.rendering.count_bytes(part.size());
    result.append(text, begin, at - begin).append(part);
    begin = at + old.size();
  }
  return result.append(text, begin);
}

template <bool from_right>
JinjaValue find_part(const JinjaCall& call, const JinjaArguments& arguments) {
  const std::string& text = text_of(call);
  const size_t at = from_right ? text.rfind(arguments.text(0)) : text.find(arguments.text(0));
  if (at == std::string::npos) return -1;
  return character_count(std::string_view(text).substr(0, at));
}

JinjaValue count_parts(const JinjaCall& call, const JinjaArguments& arguments) {
  return count_of(text_of(call), arguments.text(0));
}

JinjaValue join_parts(const JinjaCall& call, const JinjaArguments& arguments) {
  const JinjaValue::List parts = items_of(*arguments[0]);
  std::string text;
  for (const JinjaValue& part : parts->items) {
    if (part.text() == nullptr) jinja_fail("join() takes texts, not a {}", kind_of(part));
    if (&part != parts->items.data()) text += text_of(call);
    text += *part.text();
    call.rendering.count_bytes(text_of(call).size() + part.text()->size());
  }
  return text;
}

JinjaValue format_text(const JinjaCall& call, const JinjaArguments&) {
  return brace_format(text_of(call), call);
}

// str.isdigit() and the like: whether the text has characters, and only such. JinjaError: it depends
// on characters that are not ASCII.
template <bool (*is_such)(char)>
JinjaValue has_only(const JinjaCall& call, const JinjaArguments&) {
  const auto is_ascii = [](char letter) { return (letter & 0x80) == 0; };
  const std::string& text = text_of(call);
  for (const char letter : text)
    if (is_ascii(letter) && !is_such(letter)) return false;
  if (!std::ranges::all_of(text, is_ascii))
    jinja_fail("the kind of characters that are not ASCII is not supported");
  return !text.empty();
}

bool is_ascii_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_ascii_letter(char letter) { return (letter | 0x20) >= 'a' && (letter | 0x20) <= 'z'; }
bool is_ascii_word(char letter) { return is_ascii_digit(letter) || is_ascii_letter(letter); }

enum class DictPart { kKeys, kValues, kItems };
template <DictPart part>
JinjaValue view_dict(const JinjaCall& call, const JinjaArguments&) {
  JinjaList view{.kind = JinjaListKind::kView};
  for (const auto& [key, value] : call.subject.dict()->entries()) {
    if constexpr (part == DictPart::kKeys) {
      view.items.emplace_back(key);
    } else if constexpr (part == DictPart::kValues) {
      view.items.push_back(value);
    } else {
      view.items.push_back(JinjaList{.kind = JinjaListKind::kTuple, .items = {key, value}});
    }
  }
  return view;
}

JinjaValue get_item(const JinjaCall& call, const JinjaArguments& arguments) {
  check_hashable(*arguments[0]);
  const std::string* key = arguments[0]->text();
  const JinjaValue* found = key == nullptr ? nullptr : call.subject.dict()->find(*key);
  if (found != nullptr) return *found;
  return arguments[1] == nullptr ? JinjaValue(JinjaNone{}) : *arguments[1];
}

JinjaValue copy_dict(const JinjaCall& call, const JinjaArguments&) { return call.subject; }

constexpr JinjaFunction kTextMethods[] = {
    {"capitalize", {}, 0, change_letters<capitalized>},
    {"count", {"_"}, 1, count_parts},
    {"endswith", {"_"}, 1, has_affix<true>},
    {"find", {"_"}, 1, find_part<false>},
    {"format", {}, JinjaFunction::kAny, format_text},
    {"isalnum", {}, 0, has_only<is_ascii_word>},
    {"isalpha", {}, 0, has_only<is_ascii_letter>},
    {"isdecimal", {}, 0, has_only<is_ascii_digit>},
    {"isdigit", {}, 0, has_only<is_ascii_digit>},
    {"isnumeric", {}, 0, has_only<is_ascii_digit>},
    {"join", {"_"}, 1, join_parts},
    {"lower", {}, 0, change_letters<lower_text>},
    {"lstrip", {"_"}, 0, strip<Sides::kLeft>},
    {"removeprefix", {"_"}, 1, remove_affix<false>},
    {"removesuffix", {"_"}, 1, remove_affix<true>},
    {"replace", {"_", "_", "_"}, 2, replace_part},
    {"rfind", {"_"}, 1, find_part<true>},
    {"rsplit", {"sep", "maxsplit"}, 0, split<true>},
    {"rstrip", {"_"}, 0, strip<Sides::kRight>},
    {"split", {"sep", "maxsplit"}, 0, split<false>},
    {"splitlines", {}, 0, split_lines},
    {"startswith", {"_"}, 1, has_affix<false>},
    {"strip", {"_"}, 0, strip<Sides::kBoth>},
    {"title", {}, 0, change_letters<title_text>},
    {"upper", {}, 0, change_letters<upper_text>},
};

constexpr JinjaFunction kDictMethods[] = {
    {"copy", {}, 0, copy_dict},
    {"get", {"_", "_"}, 1, get_item},
    {"items", {}, 0, view_dict<DictPart::kItems>},
    {"keys", {}, 0, view_dict<DictPart::kKeys>},
    {"values", {}, 0, view_dict<DictPart::kValues>},
};

// Attributes that a value has in Python 3.11 and not here.
constexpr std::string_view kOtherTextMethods[] = {
    "casefold",   "center",       "encode",    "expandtabs",  "format_map", "index",
    "isascii",    "isidentifier", "islower",   "isprintable", "isspace",    "istitle",
    "isupper",    "ljust",        "maketrans", "partition",   "rindex",     "rjust",
    "rpartition", "swapcase",     "translate", "zfill"};
constexpr std::string_view kOtherDictMethods[] = {"clear",   "fromkeys",   "pop",
                                                  "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kRangeAttributes[] = {"count", "index", "start", "step", "stop"};
constexpr std::string_view kNumberAttributes[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};

struct Methods {
  std::span<const JinjaFunction> rows{};
  std::span<const std::string_view> others{};
};

Methods methods_of(const JinjaValue& value) {
  if (value.text() != nullptr) return {kTextMethods, kOtherTextMethods};
  if (value.dict() != nullptr) return {kDictMethods, kOtherDictMethods};
  if (value.number()) return {{}, kNumberAttributes};
  if (value.list() == nullptr) return {};
  if (value.list()->kind == JinjaListKind::kTuple) return {{}, kTupleMethods};
  if (value.list()->kind == JinjaListKind::kRange) return {{}, kRangeAttributes};
  return {{}, kListMethods};
}

}  // namespace

const JinjaFunction* find_jinja_method(const JinjaValue& value, std::string_view name) {
  const Methods methods = methods_of(value);
  const auto row = std::ranges::find(methods.rows, name, &JinjaFunction::name);
  if (row != methods.rows.end()) return &*row;
  const bool is_opaque = value.macro() != nullptr || value.function() != nullptr;
  if (is_opaque || std::ranges::find(methods.others, name) != methods.others.end())
    jinja_fail("the attribute '{}' of a {} is not supported", name, kind_of(value));
  return nullptr;
}

}  // namespace gxp
