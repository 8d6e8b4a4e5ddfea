#include <algorithm>
#include <array>
#include <cstdlib>

#include "lib/text/jinja/function.h"

namespace gxp {
namespace {

JinjaValue raise_exception(const JinjaCall&, const JinjaArguments& arguments) {
  jinja_fail("the template refuses this conversation: {}", arguments.text(0));
}

JinjaDict dict_of(const JinjaCall& call) {
  JinjaDict dict;
  if (!call.arguments.empty()) {
    if (call.arguments.size() > 1 || call.arguments[0].dict() == nullptr)
      jinja_fail("dict() and namespace() take one dict, and named arguments");
    dict = *call.arguments[0].dict();
  }
  for (const auto& [name, value] : call.named) dict.set(name, value);
  return dict;
}

JinjaValue make_dict(const JinjaCall& call, const JinjaArguments&) { return dict_of(call); }

JinjaValue make_namespace(const JinjaCall& call, const JinjaArguments&) {
  JinjaDict attributes = dict_of(call);
  for (const auto& entry : attributes.entries())
    if (entry.first.starts_with('_'))
      jinja_fail("a namespace cannot have '{}': its name begins with '_'", entry.first);
  return call.rendering.make_namespace(std::move(attributes));
}

JinjaValue make_range(const JinjaCall&, const JinjaArguments& arguments) {
  constexpr uint64_t kMaxItems = 100'000;  // jinja2.sandbox.MAX_RANGE
  const bool has_start = arguments[1] != nullptr;
  const int64_t start = has_start ? arguments.integer(0, 0) : 0;
  const int64_t stop = arguments.integer(has_start ? 1 : 0, 0);
  const int64_t step = arguments.integer(2, 1);
  if (step == 0) jinja_fail("the step of range() is 0");
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t span =
      step > 0 ? uint64_t(stop) - uint64_t(start) : uint64_t(start) - uint64_t(stop);
  const uint64_t size = step > 0 ? uint64_t(step) : -uint64_t(step);
  const uint64_t count = is_empty ? 0 : (span - 1) / size + 1;
  if (count > kMaxItems) jinja_fail("range() gives more than {} numbers", kMaxItems);
  JinjaList range{.kind = JinjaListKind::kRange};
  for (uint64_t at = 0; at < count; ++at) range.items.emplace_back(start + int64_t(at) * step);
  return range;
}

JinjaValue format_now(const JinjaCall& call, const JinjaArguments& arguments) {
  const std::string format(arguments.text(0));
  for (size_t at = format.find('%'); at != std::string::npos; at = format.find('%', at + 1)) {
    ++at;
    if (at < format.size() && format[at] == '-') ++at;
    if (at >= format.size() ||
        std::string_view("aAbBdHIjmMpSyYe%").find(format[at]) == std::string_view::npos)
      jinja_fail("strftime_now('{}') is not supported", format);
  }
  const std::time_t now = call.rendering.now();
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 1024> text{};
  // One blank more, since 0 also stands for an empty text.
  const size_t length = std::strftime(text.data(), text.size(), (format + " ").c_str(), &local);
  if (length == 0) jinja_fail("the text of strftime_now() is too long");
  return std::string(text.data(), length - 1);
}

constexpr JinjaFunction kGlobals[] = {
    {"dict", {}, JinjaFunction::kAny, make_dict},
    {"namespace", {}, JinjaFunction::kAny, make_namespace},
    {"raise_exception", {"message"}, 1, raise_exception},
    {"range", {"_", "_", "_"}, 1, make_range},
    {"strftime_now", {"format"}, 1, format_now},
};
// Those of jinja2 that are not here.
constexpr std::string_view kOtherGlobals[] = {"cycler", "joiner", "lipsum"};

}  // namespace

const JinjaFunction* find_jinja_global(std::string_view name) {
  const auto* const found = std::ranges::find(kGlobals, name, &JinjaFunction::name);
  if (found != std::end(kGlobals)) return found;
  if (std::ranges::find(kOtherGlobals, name) != std::end(kOtherGlobals))
    jinja_fail("the function '{}' is not supported", name);
  return nullptr;
}

}  // namespace gxp
