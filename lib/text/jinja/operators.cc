#include "lib/text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/text/jinja/python_text.h"
#include "lib/text/jinja/text_format.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

[[noreturn]] void fail_undefined(const JinjaUndefined& undefined) {
  jinja_fail("{}", undefined.why == nullptr ? "a value is undefined" : *undefined.why);
}

void check_defined(const JinjaValue& value) {
  if (value.undefined() != nullptr) fail_undefined(*value.undefined());
}

void check_overflow(bool has_overflown) {
  if (has_overflown) jinja_fail("a whole number is beyond 64 bits");
}

// Python rounds a quotient down.
int64_t floor_quotient(int64_t left, int64_t right) {
  check_overflow(left == std::numeric_limits<int64_t>::min() && right == -1);
  return left / right - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

JinjaValue apply_to_integers(char operation, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (operation) {
    case '+':
      check_overflow(__builtin_add_overflow(left, right, &result));
      return result;
    case '-':
      check_overflow(__builtin_sub_overflow(left, right, &result));
      return result;
    case '*':
      check_overflow(__builtin_mul_overflow(left, right, &result));
      return result;
    case '/':
      return double(left) / double(right);
    case 'd':
      return floor_quotient(left, right);
    default:
      return left - right * floor_quotient(left, right);
  }
}

JinjaValue apply_to_floats(char operation, double left, double right) {
  switch (operation) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    default:
      jinja_fail("'//' and '%' of floats are not supported");
  }
}

// Of a base that is not negative: jinja2 loses the parentheses of a negative constant.
JinjaValue power(const JinjaValue& base, const JinjaValue& exponent) {
  if (*base.number() < 0) jinja_fail("'**' of a negative number is not supported");
  if (*base.number() == 0 && *exponent.number() < 0) jinja_fail("a number is divided by 0");
  if (base.integer() && exponent.integer() && *exponent.integer() >= 0) {
    int64_t result = 1;
    const bool is_small = *base.integer() <= 1;  // it stays what it is
    const int64_t times =
        is_small ? std::min<int64_t>(*exponent.integer(), 1) : *exponent.integer();
    for (int64_t time = 0; time < times; ++time)
      check_overflow(__builtin_mul_overflow(result, *base.integer(), &result));
    return result;
  }
  const double result = std::pow(*base.number(), *exponent.number());
  if (!std::isfinite(result)) jinja_fail("the result of '**' is too large");
  return result;
}

JinjaValue repeated(const JinjaValue& value, int64_t times, JinjaRendering& rendering) {
  const size_t count = size_t(std::max<int64_t>(times, 0));
  const auto check_size = [&](size_t size) {
    if (size > 0 && count > kMaxJinjaText / size) jinja_fail("a repetition is too long");
    rendering.count_bytes(size * count);
  };
  if (value.text() != nullptr) {
    check_size(value.text()->size());
    std::string text;
    for (size_t time = 0; time < count && !value.text()->empty(); ++time) text += *value.text();
    return text;
  }
  check_size(value.list()->items.size() * sizeof(JinjaValue));
  JinjaList list{.kind = value.list()->kind};
  for (size_t time = 0; time < count && !value.list()->items.empty(); ++time)
    list.items.insert(list.items.end(), value.list()->items.begin(), value.list()->items.end());
  return list;
}

// markupsafe's Markup: what is no markup yet is escaped.
JinjaValue joined_markup(const JinjaValue& left, const JinjaValue& right,
                         JinjaRendering& rendering) {
  std::string text;
  for (const JinjaValue* side : {&left, &right}) {
    if (side->text() == nullptr) jinja_fail("'+' does not join HTML and a {}", kind_of(*side));
    text += side->is_markup() ? *side->text() : escaped_html(*side->text());
  }
  rendering.count_bytes(text.size());
  return JinjaValue::markup(std::move(text));
}

bool is_array(const JinjaValue& value) {
  return value.list() != nullptr && (value.list()->kind == JinjaListKind::kList ||
                                     value.list()->kind == JinjaListKind::kTuple);
}

JinjaValue joined_values(const JinjaValue& left, const JinjaValue& right,
                         JinjaRendering& rendering) {
  if (left.text() != nullptr && right.text() != nullptr) {
    const size_t size = left.text()->size() + right.text()->size();
    if (size > kMaxJinjaText) jinja_fail("a text is longer than {} bytes", kMaxJinjaText);
    rendering.count_bytes(size);
    return *left.text() + *right.text();
  }
  if (is_array(left) && is_array(right) && left.list()->kind == right.list()->kind) {
    JinjaList list{.kind = left.list()->kind, .items = left.list()->items};
    list.items.insert(list.items.end(), right.list()->items.begin(), right.list()->items.end());
    rendering.count_bytes(list.items.size() * sizeof(JinjaValue));
    return list;
  }
  jinja_fail("'+' does not join a {} and a {}", kind_of(left), kind_of(right));
}

bool contains(const JinjaValue& container, const JinjaValue& item) {
  if (const std::string* text = container.text()) {
    check_defined(item);
    if (item.text() == nullptr) jinja_fail("'in' does not find a {} in a text", kind_of(item));
    return text->find(*item.text()) != std::string::npos;
  }
  if (const JinjaDict* dict = container.dict()) {
    check_hashable(item);
    return item.text() != nullptr && dict->find(*item.text()) != nullptr;
  }
  const JinjaValue::List items = items_of(container);
  return std::ranges::any_of(items->items,
                             [&](const JinjaValue& each) { return are_equal(each, item); });
}

JinjaUndefined missing(const JinjaValue& value, std::string_view name) {
  return {std::make_shared<const std::string>(
      fmt::format("a {} has no '{}', so this is undefined", kind_of(value), name))};
}

// Where a slice begins, and how many items it has.
struct SlicedRange {
  int64_t start = 0, step = 1;
  size_t count = 0;
};

int64_t bound_of(const JinjaValue& value, int64_t otherwise) {
  if (value.is_none()) return otherwise;
  check_defined(value);
  if (!value.integer())
    jinja_fail("the bounds of a slice are whole numbers, not a {}", kind_of(value));
  return *value.integer();
}

// PySlice_AdjustIndices.
SlicedRange range_of(const JinjaSlice& slice, int64_t length) {
  const int64_t step = bound_of(slice.step, 1);
  if (step == 0) jinja_fail("the step of a slice is 0");
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? length - 1 : length;
  const auto place = [&](const JinjaValue& bound, int64_t otherwise) {
    const int64_t at = bound_of(bound, otherwise);
    if (bound.is_none()) return at;
    return std::clamp(at < 0 ? at + length : at, low, high);
  };
  const int64_t start = place(slice.start, step < 0 ? high : low);
  const int64_t stop = place(slice.stop, step < 0 ? low : high);
  const int64_t span = step < 0 ? start - stop : stop - start;
  if (span <= 0) return {};
  // Negated after it was divided, since the least number has no opposite.
  const uint64_t size = step < 0 ? -uint64_t(step) : uint64_t(step);
  return {start, step, size_t((uint64_t(span) - 1) / size + 1)};
}

}  // namespace

JinjaValue apply_jinja(std::string_view operation, const JinjaValue& left, const JinjaValue& right,
                       JinjaRendering& rendering) {
  if (left.is_markup() || right.is_markup()) {
    if (operation != "+") jinja_fail("'{}' of HTML is not supported", operation);
    return joined_markup(left, right, rendering);
  }
  if (operation == "%" && left.text() != nullptr)
    return percent_format(*left.text(), right, rendering);
  check_defined(left);
  check_defined(right);
  const bool are_numbers = left.number() && right.number();
  if (!are_numbers && operation == "+") return joined_values(left, right, rendering);
  if (!are_numbers && operation == "*") {
    if ((left.text() != nullptr || is_array(left)) && right.integer())
      return repeated(left, *right.integer(), rendering);
    if ((right.text() != nullptr || is_array(right)) && left.integer())
      return repeated(right, *left.integer(), rendering);
  }
  if (!are_numbers)
    jinja_fail("'{}' does not take a {} and a {}", operation, kind_of(left), kind_of(right));
  if (operation == "**") return power(left, right);
  const char name = operation == "//" ? 'd' : operation[0];
  if ((name == '/' || name == 'd' || name == '%') && *right.number() == 0)
    jinja_fail("a number is divided by 0");
  if (left.integer() && right.integer())
    return apply_to_integers(name, *left.integer(), *right.integer());
  return apply_to_floats(name, *left.number(), *right.number());
}

JinjaValue negated(const JinjaValue& value) {
  check_defined(value);
  if (value.integer()) return apply_to_integers('-', 0, *value.integer());
  if (!value.number()) jinja_fail("'-' does not take a {}", kind_of(value));
  return -*value.number();
}

bool compare_jinja(std::string_view operation, const JinjaValue& left, const JinjaValue& right) {
  if (operation == "==") return are_equal(left, right);
  if (operation == "!=") return !are_equal(left, right);
  if (operation == "in") return contains(right, left);
  if (operation == "not in") return !contains(right, left);
  check_defined(left);
  check_defined(right);
  if (operation == "<") return is_less(left, right);
  if (operation == ">") return is_less(right, left);
  const bool is_strict = operation == "<=" ? is_less(left, right) : is_less(right, left);
  return is_strict || are_equal(left, right);
}

JinjaValue attribute_of(const JinjaValue& value, std::string_view name) {
  check_defined(value);
  if (value.is_markup()) jinja_fail("the attribute '{}' of HTML is not supported", name);
  if (name.starts_with("__")) jinja_fail("the attribute '{}' is not supported", name);
  if (const JinjaFunction* method = find_jinja_method(value, name)) return method;
  const JinjaNamespace* names = value.as_namespace();
  const JinjaDict* dict = names != nullptr ? &names->attributes : value.dict();
  const JinjaValue* found = dict == nullptr ? nullptr : dict->find(name);
  return found == nullptr ? JinjaValue(missing(value, name)) : *found;
}

JinjaValue item_of(const JinjaValue& value, const JinjaValue& key) {
  check_defined(value);
  if (const std::string* name = key.text()) {
    const JinjaValue* found = value.dict() == nullptr ? nullptr : value.dict()->find(*name);
    return found == nullptr ? attribute_of(value, *name) : *found;
  }
  const std::optional<int64_t> place = key.integer();
  const JinjaList* list = value.list();
  const bool is_indexed =
      is_array(value) || (list != nullptr && list->kind == JinjaListKind::kRange);
  if (value.is_markup()) jinja_fail("an item of HTML is not supported");
  if (!place || (!is_indexed && value.text() == nullptr)) return missing(value, printed(key));
  const auto length = int64_t(length_of(value));
  const int64_t at = *place < 0 ? *place + length : *place;
  if (at < 0 || at >= length) return missing(value, printed(key));
  if (list != nullptr) return list->items[size_t(at)];
  return characters_of(*value.text())[size_t(at)];
}

JinjaValue slice_of(const JinjaValue& value, const JinjaSlice& slice) {
  check_defined(value);
  if (value.is_markup()) jinja_fail("a slice of HTML is not supported");
  if (value.text() == nullptr && !is_array(value))
    jinja_fail("a slice of a {} is not supported", kind_of(value));
  const SlicedRange range = range_of(slice, int64_t(length_of(value)));
  const auto place = [&](size_t count) {
    return size_t(range.start + int64_t(count) * range.step);
  };
  if (const std::string* text = value.text()) {
    const std::vector<std::string_view> characters = characters_of(*text);
    std::string part;
    for (size_t count = 0; count < range.count; ++count) part += characters[place(count)];
    return part;
  }
  JinjaList list{.kind = value.list()->kind};
  for (size_t count = 0; count < range.count; ++count)
    list.items.push_back(value.list()->items[place(count)]);
  return list;
}

}  // namespace gxp
