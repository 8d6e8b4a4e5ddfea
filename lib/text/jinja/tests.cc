#include <algorithm>

#include "lib/text/jinja/function.h"
#include "lib/text/jinja/operators.h"

namespace gxp {
namespace {

using IsKind = bool (*)(const JinjaValue&);

template <IsKind is_kind>
JinjaValue test_kind(const JinjaCall& call, const JinjaArguments&) {
  return is_kind(call.subject);
}

bool is_undefined(const JinjaValue& value) { return value.undefined() != nullptr; }
bool is_defined(const JinjaValue& value) { return value.undefined() == nullptr; }
bool is_none(const JinjaValue& value) { return value.is_none(); }
bool is_boolean(const JinjaValue& value) { return value.is_bool(); }
bool is_the_true(const JinjaValue& value) { return value.is_bool() && is_true(value); }
bool is_the_false(const JinjaValue& value) { return value.is_bool() && !is_true(value); }
bool is_integer(const JinjaValue& value) { return value.integer() && !value.is_bool(); }
bool is_real(const JinjaValue& value) { return value.is_float(); }
bool is_number(const JinjaValue& value) { return value.number().has_value(); }
bool is_text(const JinjaValue& value) { return value.text() != nullptr; }
bool is_mapping(const JinjaValue& value) { return value.dict() != nullptr; }
bool is_callable(const JinjaValue& value) {
  // Python's Undefined, too, has a method that is called (and fails).
  return value.macro() != nullptr || value.function() != nullptr || is_undefined(value);
}
bool is_iterable(const JinjaValue& value) {
  return is_text(value) || is_mapping(value) || value.list() != nullptr || is_undefined(value);
}
bool is_sequence(const JinjaValue& value) {
  const bool has_places =
      value.list() == nullptr || (value.list()->kind != JinjaListKind::kView &&
                                  value.list()->kind != JinjaListKind::kGenerator);
  return is_iterable(value) && has_places;
}

JinjaValue remainder_of(const JinjaCall& call, const JinjaValue& divisor) {
  return apply_jinja("%", call.subject, divisor, call.rendering);
}
JinjaValue test_odd(const JinjaCall& call, const JinjaArguments&) {
  return are_equal(remainder_of(call, 2), 1);
}
JinjaValue test_even(const JinjaCall& call, const JinjaArguments&) {
  return are_equal(remainder_of(call, 2), 0);
}
JinjaValue test_divisible(const JinjaCall& call, const JinjaArguments& arguments) {
  return are_equal(remainder_of(call, *arguments[0]), 0);
}

// Identity is that of equality for none and the booleans alone.
JinjaValue test_same(const JinjaCall& call, const JinjaArguments& arguments) {
  const JinjaValue& other = *arguments[0];
  if (!other.is_none() && !other.is_bool())
    jinja_fail("'is sameas' is supported for none, true and false");
  return call.subject.is_bool() == other.is_bool() && are_equal(call.subject, other);
}

enum Comparison { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kIn };
template <Comparison comparison>
JinjaValue test_comparison(const JinjaCall& call, const JinjaArguments& arguments) {
  constexpr std::string_view kNames[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
  return compare_jinja(kNames[comparison], call.subject, *arguments[0]);
}

constexpr JinjaFunction kTests[] = {
    {"!=", {"_"}, 1, test_comparison<kUnequal>},
    {"<", {"_"}, 1, test_comparison<kLess>},
    {"<=", {"_"}, 1, test_comparison<kLessOrEqual>},
    {"==", {"_"}, 1, test_comparison<kEqual>},
    {">", {"_"}, 1, test_comparison<kGreater>},
    {">=", {"_"}, 1, test_comparison<kGreaterOrEqual>},
    {"boolean", {}, 0, test_kind<is_boolean>},
    {"callable", {}, 0, test_kind<is_callable>},
    {"defined", {}, 0, test_kind<is_defined>},
    {"divisibleby", {"num"}, 1, test_divisible},
    {"eq", {"_"}, 1, test_comparison<kEqual>},
    {"equalto", {"_"}, 1, test_comparison<kEqual>},
    {"even", {}, 0, test_even},
    {"false", {}, 0, test_kind<is_the_false>},
    {"float", {}, 0, test_kind<is_real>},
    {"ge", {"_"}, 1, test_comparison<kGreaterOrEqual>},
    {"greaterthan", {"_"}, 1, test_comparison<kGreater>},
    {"gt", {"_"}, 1, test_comparison<kGreater>},
    {"in", {"seq"}, 1, test_comparison<kIn>},
    {"integer", {}, 0, test_kind<is_integer>},
    {"iterable", {}, 0, test_kind<is_iterable>},
    {"le", {"_"}, 1, test_comparison<kLessOrEqual>},
    {"lessthan", {"_"}, 1, test_comparison<kLess>},
    {"lt", {"_"}, 1, test_comparison<kLess>},
    {"mapping", {}, 0, test_kind<is_mapping>},
    {"ne", {"_"}, 1, test_comparison<kUnequal>},
    {"none", {}, 0, test_kind<is_none>},
    {"number", {}, 0, test_kind<is_number>},
    {"odd", {}, 0, test_odd},
    {"sameas", {"other"}, 1, test_same},
    {"sequence", {}, 0, test_kind<is_sequence>},
    {"string", {}, 0, test_kind<is_text>},
    {"true", {}, 0, test_kind<is_the_true>},
    {"undefined", {}, 0, test_kind<is_undefined>},
};

}  // namespace

const JinjaFunction& find_jinja_test(std::string_view name) {
  const auto* const found = std::ranges::find(kTests, name, &JinjaFunction::name);
  if (found == std::end(kTests)) jinja_fail("the test '{}' is not supported", name);
  return *found;
}

}  // namespace gxp
