#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/text/jinja/function.h"
#include "lib/text/jinja/operators.h"
#include "lib/text/jinja/python_text.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

JinjaValue generator(std::vector<JinjaValue> items) {
  return JinjaList{.kind = JinjaListKind::kGenerator, .items = std::move(items)};
}

// --- texts

template <std::string (*change)(std::string_view)>
JinjaValue change_case(const JinjaCall& call, const JinjaArguments&) {
  return change(printed(call.subject));
}

JinjaValue trim(const JinjaCall& call, const JinjaArguments& arguments) {
  const bool has_set = arguments[0] != nullptr && !arguments[0]->is_none();
  const std::string text = printed(call.subject);
  return stripped(text, Sides::kBoth, has_set ? std::optional(arguments.text(0)) : std::nullopt);
}

JinjaValue to_string(const JinjaCall& call, const JinjaArguments&) { return printed(call.subject); }

JinjaValue replace(const JinjaCall& call, const JinjaArguments& arguments) {
  const JinjaFunction& method = *find_jinja_method("", "replace");
  JinjaCall on_text = {
      call.rendering, printed(call.subject), {printed(*arguments[0]), printed(*arguments[1])}};
  if (arguments[2] != nullptr && !arguments[2]->is_none())
    on_text.arguments.push_back(*arguments[2]);
  return run_jinja(method, on_text);
}

JinjaValue indent(const JinjaCall& call, const JinjaArguments& arguments) {
  if (call.subject.text() == nullptr)
    jinja_fail("indent takes a text, not a {}", kind_of(call.subject));
  const bool is_text = arguments[0] != nullptr && arguments[0]->text() != nullptr;
  const int64_t width = is_text ? 0 : std::clamp<int64_t>(arguments.integer(0, 4), 0, 1000);
  const std::string indentation =
      is_text ? std::string(arguments.text(0)) : std::string(size_t(width), ' ');
  const bool indents_first = arguments.is_true(1);
  const bool indents_blank = arguments.is_true(2);
  const std::string text = *call.subject.text() + "\n";
  const std::vector<std::string_view> lines = lines_of(text);
  call.rendering.count_bytes(lines.size() * indentation.size());
  std::string result;
  for (const std::string_view& line : lines) {
    const bool is_first = &line == lines.data();
    if (!is_first) result += "\n";
    if (is_first ? indents_first : indents_blank || !line.empty()) result += indentation;
    result += line;
  }
  return result;
}

JsonLayout layout_of(const JinjaArguments& arguments) {
  if (arguments.is_true(0)) jinja_fail("tojson with ensure_ascii is not supported");
  JsonLayout layout;
  if (arguments[1] != nullptr && !arguments[1]->is_none()) {
    const bool is_text = arguments[1]->text() != nullptr;
    const auto width = is_text ? 0 : std::clamp<int64_t>(arguments.integer(1, 0), 0, 1000);
    layout.indent = is_text ? std::string(arguments.text(1)) : std::string(size_t(width), ' ');
    layout.between_items = ",";
  }
  if (arguments[2] != nullptr && !arguments[2]->is_none()) {
    const JinjaValue::List separators = items_of(*arguments[2]);
    const bool are_texts = separators->items.size() == 2 &&
                           separators->items[0].text() != nullptr &&
                           separators->items[1].text() != nullptr;
    if (!are_texts) jinja_fail("tojson takes two texts as separators");
    layout.between_items = *separators->items[0].text();
    layout.after_key = *separators->items[1].text();
  }
  layout.sort_keys = arguments.is_true(3);
  return layout;
}

JinjaValue to_json(const JinjaCall& call, const JinjaArguments& arguments) {
  return to_python_json(call.subject, layout_of(arguments));
}

// --- numbers

// int(text, 10): blanks around, a sign, and digits; none of Python's underscores.
std::optional<int64_t> parse_integer(std::string_view text) {
  text = stripped(text, Sides::kBoth);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range || text.find('_') != std::string_view::npos)
    jinja_fail("the number in '{}' is not supported", text.substr(0, 100));
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  text = stripped(text, Sides::kBoth);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range || text.find('_') != std::string_view::npos)
    jinja_fail("the number in '{}' is not supported", text.substr(0, 100));
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 9.2e18) jinja_fail("a whole number is beyond 64 bits");
  return int64_t(value);
}

void check_is_defined(const JinjaValue& value) {
  if (value.undefined() != nullptr) attribute_of(value, "int");  // says what is undefined
}

JinjaValue to_int(const JinjaCall& call, const JinjaArguments& arguments) {
  check_is_defined(call.subject);
  if (arguments.integer(1, 10) != 10) jinja_fail("int with another base is not supported");
  const JinjaValue otherwise = arguments[0] == nullptr ? JinjaValue(0) : *arguments[0];
  std::optional<int64_t> value = call.subject.integer();
  if (!value && call.subject.number()) value = truncated(*call.subject.number());
  if (const std::string* text = call.subject.text()) {
    value = parse_integer(*text);
    const std::optional<double> real = value ? std::nullopt : parse_float(*text);
    if (real) value = truncated(*real);
  }
  return value ? JinjaValue(*value) : otherwise;
}

JinjaValue to_float(const JinjaCall& call, const JinjaArguments& arguments) {
  check_is_defined(call.subject);
  std::optional<double> value = call.subject.number();
  if (const std::string* text = call.subject.text()) value = parse_float(*text);
  if (value) return *value;
  return arguments[0] == nullptr ? JinjaValue(0.0) : *arguments[0];
}

JinjaValue absolute(const JinjaCall& call, const JinjaArguments&) {
  const bool is_negative = call.subject.number() && *call.subject.number() < 0;
  if (is_negative || !call.subject.number()) return negated(call.subject);
  return call.subject.is_bool() ? JinjaValue(*call.subject.integer()) : call.subject;
}

// --- items

JinjaValue length(const JinjaCall& call, const JinjaArguments&) { return length_of(call.subject); }

// The attribute that "a.b.0" names; the value itself where there is no path.
JinjaValue follow(JinjaValue value, const JinjaValue* path) {
  if (path == nullptr || path->is_none()) return value;
  if (path->text() == nullptr) return item_of(value, *path);
  for (const std::string_view part : split_text(*path->text(), {.separator = "."})) {
    const bool is_place = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    value = item_of(value, is_place ? JinjaValue(*parse_integer(part)) : JinjaValue(part));
  }
  return value;
}

JinjaValue join(const JinjaCall& call, const JinjaArguments& arguments) {
  const std::string between = arguments[0] == nullptr ? "" : printed(*arguments[0]);
  std::string text;
  bool is_first = true;
  const JinjaValue::List taken = items_of(call.subject);
  for (const JinjaValue& item : taken->items) {
    const std::string part = (is_first ? "" : between) + printed(follow(item, arguments[1]));
    call.rendering.count_bytes(part.size());
    text += part;
    is_first = false;
  }
  return text;
}

JinjaValue default_value(const JinjaCall& call, const JinjaArguments& arguments) {
  const bool is_missing =
      call.subject.undefined() != nullptr || (arguments.is_true(1) && !is_true(call.subject));
  if (!is_missing) return call.subject;
  return arguments[0] == nullptr ? JinjaValue("") : *arguments[0];
}

JinjaValue first(const JinjaCall& call, const JinjaArguments&) {
  if (const JinjaValue::List list = call.subject.shared_list()) {
    if (list->taken == list->items.size()) return {};
    const JinjaValue item = list->items[list->taken];
    if (list->kind == JinjaListKind::kGenerator) ++list->taken;
    return item;
  }
  const JinjaValue::List items = items_of(call.subject);
  return items->items.empty() ? JinjaValue() : items->items.front();
}

JinjaValue last(const JinjaCall& call, const JinjaArguments&) {
  length_of(call.subject);  // a generator has no end
  const JinjaValue::List items = items_of(call.subject);
  return items->items.empty() ? JinjaValue() : items->items.back();
}

JinjaValue items(const JinjaCall& call, const JinjaArguments&) {
  if (call.subject.undefined() != nullptr) return generator({});
  if (call.subject.dict() == nullptr)
    jinja_fail("items takes a dict, not a {}", kind_of(call.subject));
  const JinjaValue pairs = run_jinja(*find_jinja_method(call.subject, "items"), call);
  return generator(pairs.list()->items);
}

JinjaValue to_list(const JinjaCall& call, const JinjaArguments&) {
  return JinjaList{.items = items_of(call.subject)->items};
}

JinjaValue reverse(const JinjaCall& call, const JinjaArguments&) {
  if (call.subject.text() != nullptr) return slice_of(call.subject, {.step = -1});
  const bool is_generator =
      call.subject.list() != nullptr && call.subject.list()->kind == JinjaListKind::kGenerator;
  std::vector<JinjaValue> reversed = items_of(call.subject)->items;
  std::ranges::reverse(reversed);
  if (is_generator) return JinjaList{.items = std::move(reversed)};
  return generator(std::move(reversed));
}

JinjaValue sort_key(const JinjaValue& value, bool is_case_sensitive) {
  return value.text() != nullptr && !is_case_sensitive ? lower_text(*value.text()) : value;
}

template <class Item, class Key>
void sort_stably(std::vector<Item>& items, bool is_reversed, Key key) {
  // Python keeps the order of equal items also where it sorts in reverse.
  std::ranges::stable_sort(items, [&](const Item& left, const Item& right) {
    return is_reversed ? is_less(key(right), key(left)) : is_less(key(left), key(right));
  });
}

JinjaValue sort(const JinjaCall& call, const JinjaArguments& arguments) {
  if (arguments[2] != nullptr && arguments.text(2).find(',') != std::string_view::npos)
    jinja_fail("sort by several attributes is not supported");
  std::vector<JinjaValue> sorted = items_of(call.subject)->items;
  sort_stably(sorted, arguments.is_true(0), [&](const JinjaValue& item) {
    return sort_key(follow(item, arguments[2]), arguments.is_true(1));
  });
  return JinjaList{.items = std::move(sorted)};
}

JinjaValue sort_dict(const JinjaCall& call, const JinjaArguments& arguments) {
  const std::string_view by = arguments.text(1, "key");
  if (by != "key" && by != "value") jinja_fail("dictsort is by 'key' or 'value', not '{}'", by);
  if (call.subject.dict() == nullptr)
    jinja_fail("dictsort takes a dict, not a {}", kind_of(call.subject));
  std::vector<JinjaValue> pairs =
      items_of(run_jinja(*find_jinja_method(call.subject, "items"), {call.rendering, call.subject}))
          ->items;
  sort_stably(pairs, arguments.is_true(2), [&](const JinjaValue& pair) {
    return sort_key(pair.list()->items[by == "key" ? 0 : 1], arguments.is_true(0));
  });
  return JinjaList{.items = std::move(pairs)};
}

// The call of the filter or test that is the argument at `place`, with the arguments after it.
JinjaCall inner_call(const JinjaCall& call, const JinjaValue& item, size_t place) {
  JinjaCall inner{call.rendering, item, {}, call.named};
  inner.arguments.assign(call.arguments.begin() + ptrdiff_t(place) + 1, call.arguments.end());
  return inner;
}

const std::string& name_at(const JinjaCall& call, size_t place) {
  if (call.arguments.size() <= place || call.arguments[place].text() == nullptr)
    jinja_fail("the name of a filter, test or attribute is missing");
  return *call.arguments[place].text();
}

JinjaValue map(const JinjaCall& call, const JinjaArguments&) {
  std::vector<JinjaValue> mapped;
  const bool is_by_attribute = call.arguments.empty() && !call.named.empty();
  const JinjaValue* attribute = nullptr;
  const JinjaValue* otherwise = nullptr;
  if (is_by_attribute) {
    for (const auto& [name, value] : call.named) {
      if (name != "attribute" && name != "default")
        jinja_fail("map() takes no argument '{}'", name);
      (name == "attribute" ? attribute : otherwise) = &value;
    }
    if (otherwise != nullptr || attribute == nullptr)
      jinja_fail("map with a default is not supported");
  }
  const JinjaValue::List taken = items_of(call.subject);
  for (const JinjaValue& item : taken->items) {
    call.rendering.count_step();
    mapped.push_back(is_by_attribute ? follow(item, attribute)
                                     : run_jinja(find_jinja_filter(name_at(call, 0)),
                                                 inner_call(call, item, 0)));
  }
  return generator(std::move(mapped));
}

template <bool by_attribute, bool wanted>
JinjaValue select(const JinjaCall& call, const JinjaArguments&) {
  constexpr size_t kTest = by_attribute ? 1 : 0;
  if (by_attribute) name_at(call, 0);
  std::vector<JinjaValue> selected;
  const JinjaValue::List taken = items_of(call.subject);
  for (const JinjaValue& item : taken->items) {
    call.rendering.count_step();
    const JinjaValue value = by_attribute ? follow(item, call.arguments.data()) : item;
    const JinjaValue found =
        call.arguments.size() <= kTest
            ? value
            : run_jinja(find_jinja_test(name_at(call, kTest)), inner_call(call, value, kTest));
    if (is_true(found) == wanted) selected.push_back(item);
  }
  return generator(std::move(selected));
}

constexpr size_t kAny = JinjaFunction::kAny;
constexpr JinjaFunction kFilters[] = {
    {"abs", {}, 0, absolute},
    {"capitalize", {}, 0, change_case<capitalized>},
    {"count", {}, 0, length},
    {"d", {"default_value", "boolean"}, 0, default_value},
    {"default", {"default_value", "boolean"}, 0, default_value},
    {"dictsort", {"case_sensitive", "by", "reverse"}, 0, sort_dict},
    {"first", {}, 0, first},
    {"float", {"default"}, 0, to_float},
    {"indent", {"width", "first", "blank"}, 0, indent},
    {"int", {"default", "base"}, 0, to_int},
    {"items", {}, 0, items},
    {"join", {"d", "attribute"}, 0, join},
    {"last", {}, 0, last},
    {"length", {}, 0, length},
    {"list", {}, 0, to_list},
    {"lower", {}, 0, change_case<lower_text>},
    {"map", {}, kAny, map},
    {"reject", {}, kAny, select<false, false>},
    {"rejectattr", {}, kAny, select<true, false>},
    {"replace", {"old", "new", "count"}, 2, replace},
    {"reverse", {}, 0, reverse},
    {"select", {}, kAny, select<false, true>},
    {"selectattr", {}, kAny, select<true, true>},
    {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
    {"string", {}, 0, to_string},
    {"title", {}, 0, change_case<title_words>},
    {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, to_json},
    {"trim", {"chars"}, 0, trim},
    {"upper", {}, 0, change_case<upper_text>},
};

}  // namespace

const JinjaFunction& find_jinja_filter(std::string_view name) {
  const auto* const found = std::ranges::find(kFilters, name, &JinjaFunction::name);
  if (found == std::end(kFilters)) jinja_fail("the filter '{}' is not supported", name);
  return *found;
}

}  // namespace gxp
