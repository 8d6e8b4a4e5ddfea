#include "lib/text/jinja/function.h"

#include <algorithm>
#include <string>

namespace gxp {
namespace {

// Of a rendering: seconds of work, and memory that any host has.
constexpr size_t kMaxSteps = 50'000'000;
constexpr size_t kMaxBytes = size_t{1} << 30;

void check_type(bool is_right, std::string_view wanted, const JinjaValue& value) {
  if (!is_right) jinja_fail("a {} was expected as an argument, not a {}", wanted, kind_of(value));
}

JinjaArguments bind(const JinjaFunction& function, const JinjaCall& call) {
  const auto& parameters = function.parameters;
  const auto count = size_t(std::ranges::find(parameters, "") - parameters.begin());
  if (call.arguments.size() > count)
    jinja_fail("{}() takes {} arguments at most, not {}", function.name, count,
               call.arguments.size());
  JinjaArguments bound;
  for (size_t at = 0; at < call.arguments.size(); ++at) bound[at] = &call.arguments[at];
  for (const auto& [name, value] : call.named) {
    const auto place = size_t(std::ranges::find(parameters, name) - parameters.begin());
    if (place >= count || name == "_")
      jinja_fail("{}() takes no argument '{}'", function.name, name);
    if (bound[place] != nullptr) jinja_fail("{}() is given '{}' twice", function.name, name);
    bound[place] = &value;
  }
  for (size_t at = 0; at < function.required; ++at)
    if (bound[at] == nullptr)
      jinja_fail("{}() needs {} arguments", function.name, function.required);
  return bound;
}

// What Python does with markup as with any text, or what takes it as such.
constexpr std::string_view kMarkupFunctions[] = {
    "count",   "d",         "default", "defined",     "dict",   "e",        "eq",
    "equalto", "escape",    "false",   "forceescape", "in",     "iterable", "length",
    "mapping", "namespace", "ne",      "none",        "number", "safe",     "sequence",
    "string",  "tojson",    "true",    "undefined"};

void check_markup(const JinjaFunction& function, const JinjaCall& call) {
  const bool has_markup =
      call.subject.is_markup() || std::ranges::any_of(call.arguments, &JinjaValue::is_markup) ||
      std::ranges::any_of(call.named, &JinjaValue::is_markup, &JinjaDict::Entry::second);
  if (has_markup &&
      std::ranges::find(kMarkupFunctions, function.name) == std::end(kMarkupFunctions))
    jinja_fail("'{}' of HTML is not supported", function.name);
}

}  // namespace

void JinjaRendering::count_step() {
  if (++steps_ > kMaxSteps) jinja_fail("the template takes more than {} steps", kMaxSteps);
}

void JinjaRendering::count_bytes(size_t bytes) {
  bytes_ += std::min(bytes, kMaxBytes + 1);
  if (bytes_ > kMaxBytes) jinja_fail("the template makes more than {} bytes of text", kMaxBytes);
}

JinjaValue JinjaRendering::make_namespace(JinjaDict attributes) {
  namespaces_.push_back({std::move(attributes)});
  return &namespaces_.back();
}

std::string_view JinjaArguments::text(size_t place, std::string_view otherwise) const {
  const JinjaValue* value = values_[place];
  if (value == nullptr) return otherwise;
  check_type(value->text() != nullptr, "text", *value);
  return *value->text();
}

int64_t JinjaArguments::integer(size_t place, int64_t otherwise) const {
  const JinjaValue* value = values_[place];
  if (value == nullptr) return otherwise;
  check_type(value->integer().has_value(), "whole number", *value);
  return *value->integer();
}

bool JinjaArguments::is_true(size_t place, bool otherwise) const {
  const JinjaValue* value = values_[place];
  return value == nullptr ? otherwise : gxp::is_true(*value);
}

JinjaValue run_jinja(const JinjaFunction& function, const JinjaCall& call) {
  check_markup(function, call);
  if (function.required == JinjaFunction::kAny) return function.run(call, {});
  JinjaValue result = function.run(call, bind(function, call));
  if (result.text() != nullptr) call.rendering.count_bytes(result.text()->size());
  if (result.list() != nullptr)
    call.rendering.count_bytes(result.list()->items.size() * sizeof(JinjaValue));
  return result;
}

}  // namespace gxp
