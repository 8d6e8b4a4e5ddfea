#include <algorithm>

#include "lib/text/jinja/function.h"
#include "lib/text/jinja/number_filters.h"
#include "lib/text/jinja/operators.h"
#include "lib/text/jinja/python_text.h"
#include "lib/text/jinja/text_format.h"
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

JinjaValue to_string(const JinjaCall& call, const JinjaArguments&) {
  return call.subject.is_markup() ? call.subject : printed(call.subject);
}

JinjaValue mark_safe(const JinjaCall& call, const JinjaArguments&) {
  return JinjaValue::markup(printed(call.subject));
}

template <bool also_markup>
JinjaValue escape(const JinjaCall& call, const JinjaArguments&) {
  if (call.subject.is_markup() && !also_markup) return call.subject;
  return JinjaValue::markup(escaped_html(printed(call.subject)));
}

JinjaValue replace(const JinjaCall& call, const JinjaArguments& arguments) {
  const JinjaFunction& method = *find_jinja_method("", "replace");
  JinjaCall on_text = {
      call.rendering, printed(call.subject), {printed(*arguments[0]), printed(*arguments[1])}};
  if (arguments[2] != nullptr && !arguments[2]->is_none())
    on_text.arguments.push_back(*arguments[2]);
  return run_jinja(method, on_text);
}

// Python's value % arguments.
JinjaValue format(const JinjaCall& call, const JinjaArguments&) {
  if (!call.named.empty() && !call.arguments.empty())
    jinja_fail("format takes either arguments or named ones");
  JinjaValue values = JinjaList{.kind = JinjaListKind::kTuple, .items = call.arguments};
  if (!call.named.empty()) {
    JinjaDict named;
    for (const auto& [name, value] : call.named) named.set(name, value);
    values = std::move(named);
  }
  return percent_format(printed(call.subject), values, call.rendering);
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

// --- items

JinjaValue length(const JinjaCall& call, const JinjaArguments&) { return length_of(call.subject); }

// The attribute that "a.b.0" names; the value itself where there is no path.
JinjaValue follow(JinjaValue value, const JinjaValue* path) {
  if (path == nullptr || path->is_none()) return value;
  if (path->text() == nullptr) return item_of(value, *path);
  for (const std::string_view part : split_text(*path->text(), {.separator = "."})) {
    const bool is_place = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    value = item_of(value, is_place ? JinjaValue(*parse_jinja_integer(part)) : JinjaValue(part));
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

JinjaValue unique(const JinjaCall& call, const JinjaArguments& arguments) {
  std::vector<JinjaValue> kept, keys;
  const JinjaValue::List taken = items_of(call.subject);
  for (const JinjaValue& item : taken->items) {
    JinjaValue key = sort_key(follow(item, arguments[1]), arguments.is_true(0));
    check_hashable(key);
    const auto is_known = [&](const JinjaValue& other) {
      call.rendering.count_step();
      return are_equal(key, other);
    };
    if (std::ranges::any_of(keys, is_known)) continue;
    keys.push_back(std::move(key));
    kept.push_back(item);
  }
  return generator(std::move(kept));
}

// Of whole numbers and lists: how Python adds floats depends on its version.
JinjaValue sum(const JinjaCall& call, const JinjaArguments& arguments) {
  JinjaValue total = arguments[1] == nullptr ? JinjaValue(0) : *arguments[1];
  if (total.text() != nullptr) jinja_fail("sum does not join texts");
  const JinjaValue::List taken = items_of(call.subject);
  for (const JinjaValue& item : taken->items) {
    total = apply_jinja("+", total, follow(item, arguments[0]), call.rendering);
    if (total.is_float()) jinja_fail("sum of numbers with a fraction is not supported");
  }
  return total;
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
    {"abs", {}, 0, filter_abs},
    {"capitalize", {}, 0, change_case<capitalized>},
    {"count", {}, 0, length},
    {"d", {"default_value", "boolean"}, 0, default_value},
    {"default", {"default_value", "boolean"}, 0, default_value},
    {"dictsort", {"case_sensitive", "by", "reverse"}, 0, sort_dict},
    {"e", {}, 0, escape<false>},
    {"escape", {}, 0, escape<false>},
    {"first", {}, 0, first},
    {"float", {"default"}, 0, filter_float},
    {"forceescape", {}, 0, escape<true>},
    {"format", {}, kAny, format},
    {"indent", {"width", "first", "blank"}, 0, indent},
    {"int", {"default", "base"}, 0, filter_int},
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
    {"round", {"precision", "method"}, 0, filter_round},
    {"safe", {}, 0, mark_safe},
    {"select", {}, kAny, select<false, true>},
    {"selectattr", {}, kAny, select<true, true>},
    {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
    {"string", {}, 0, to_string},
    {"sum", {"attribute", "start"}, 0, sum},
    {"title", {}, 0, change_case<title_words>},
    {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, to_json},
    {"trim", {"chars"}, 0, trim},
    {"unique", {"case_sensitive", "attribute"}, 0, unique},
    {"upper", {}, 0, change_case<upper_text>},
};

}  // namespace

const JinjaFunction& find_jinja_filter(std::string_view name) {
  const auto* const found = std::ranges::find(kFilters, name, &JinjaFunction::name);
  if (found == std::end(kFilters)) jinja_fail("the filter '{}' is not supported", name);
  return *found;
}

}  // namespace gxp
