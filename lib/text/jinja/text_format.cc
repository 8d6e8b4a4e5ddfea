#include "lib/text/jinja/text_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "lib/text/jinja/python_text.h"
#include "lib/text/jinja/written.h"

namespace gxp {
namespace {

constexpr std::string_view kDigits = "0123456789";

// What is between "%" and the letter.
struct Conversion {
  std::string flags{};
  int width = 0, precision = -1;  // below 0: none
  char letter = 0;
};

class PercentFormat {
 public:
  PercentFormat(std::string_view rest, const JinjaValue& values, JinjaRendering& rendering)
      : rest_(rest), values_(values), rendering_(rendering) {}

  std::string run() {
    for (size_t at = rest_.find('%'); at != rest_.npos; at = rest_.find('%')) {
      add(rest_.substr(0, at));
      rest_.remove_prefix(at + 1);
      convert();
    }
    add(rest_);
    if (!may_be_left_over() && taken_ < count())
      jinja_fail("a format does not take all of its values");
    return std::move(text_);
  }

 private:
  void add(std::string_view part) {
    rendering_.count_bytes(part.size());
    text_ += part;
  }

  [[nodiscard]] bool is_tuple() const {
    return values_.list() != nullptr && values_.list()->kind == JinjaListKind::kTuple;
  }
  // What Python takes for a mapping: all that has items by a key or a place, but tuples and texts.
  [[nodiscard]] bool may_be_left_over() const {
    const JinjaList* list = values_.list();
    return values_.dict() != nullptr || values_.undefined() != nullptr ||
           (list != nullptr &&
            (list->kind == JinjaListKind::kList || list->kind == JinjaListKind::kRange));
  }
  [[nodiscard]] size_t count() const { return is_tuple() ? values_.list()->items.size() : 1; }

  std::string take_all_of(std::string_view set) {
    const size_t size = std::min(rest_.find_first_not_of(set), rest_.size());
    const std::string taken(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return taken;
  }

  int take_number(int otherwise) {
    const std::string digits = take_all_of(kDigits);
    if (digits.size() > 3) jinja_fail("the width {} in a format is not supported", digits);
    int number = otherwise;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  JinjaValue next_value() {
    if (taken_ >= count()) jinja_fail("a format has too few values");
    ++taken_;
    return is_tuple() ? values_.list()->items[taken_ - 1] : values_;
  }

  JinjaValue named_value() {
    const size_t end = rest_.find(')');
    if (values_.dict() == nullptr || end == rest_.npos ||
        rest_.substr(1, end - 1).find('(') != rest_.npos)
      jinja_fail("a name in a format needs a dict, and ends with ')'");
    const JinjaValue* found = values_.dict()->find(rest_.substr(1, end - 1));
    if (found == nullptr) jinja_fail("a format has no value '{}'", rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return *found;
  }

  void convert() {
    const bool is_named = rest_.starts_with('(');
    const JinjaValue named = is_named ? named_value() : JinjaValue();
    Conversion conversion;
    conversion.flags = take_all_of("-+ 0");
    conversion.width = take_number(0);
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      conversion.precision = take_number(0);
    }
    if (rest_.empty()) jinja_fail("a format ends with '%'");
    conversion.letter = rest_[0];
    if (conversion.letter != '%' &&
        std::string_view("sdif").find(rest_[0]) == std::string_view::npos)
      jinja_fail("'%{}' in a format is not supported", characters_of(rest_)[0]);
    rest_.remove_prefix(1);
    if (conversion.letter == '%') return add("%");
    const JinjaValue value = is_named ? named : next_value();
    add(conversion.letter == 's' ? of_text(conversion, value) : of_number(conversion, value));
  }

  static std::string of_text(const Conversion& conversion, const JinjaValue& value) {
    const std::string whole = printed(value);
    std::string text;
    size_t length = 0;
    for (const std::string_view character : characters_of(whole)) {
      if (conversion.precision >= 0 && length == size_t(conversion.precision)) break;
      text += character;
      ++length;
    }
    const std::string blanks(size_t(conversion.width) - std::min(size_t(conversion.width), length),
                             ' ');
    return conversion.flags.find('-') != std::string::npos ? text + blanks : blanks + text;
  }

  static std::string of_number(const Conversion& conversion, const JinjaValue& value) {
    if (!value.number()) jinja_fail("'%{}' does not take a {}", conversion.letter, kind_of(value));
    if (!std::isfinite(*value.number()))
      jinja_fail("'%{}' of {} is not supported", conversion.letter, printed(value));
    std::array<char, 2048> text{};
    const std::string flags = "%" + conversion.flags + "*.*";
    if (conversion.letter == 'f') {
      std::snprintf(text.data(), text.size(), (flags + "f").c_str(), conversion.width,
                    conversion.precision, *value.number());
      return text.data();
    }
    if (conversion.precision >= 0) jinja_fail("'%d' with a precision is not supported");
    if (!value.integer() && std::abs(*value.number()) >= 9.2e18)
      jinja_fail("a whole number is beyond 64 bits");
    const int64_t whole = value.integer() ? *value.integer() : int64_t(*value.number());
    std::snprintf(text.data(), text.size(), (flags + "lld").c_str(), conversion.width, -1,
                  static_cast<long long>(whole));
    return text.data();
  }

  std::string_view rest_;
  const JinjaValue& values_;
  JinjaRendering& rendering_;
  std::string text_;
  size_t taken_ = 0;
};

// The value of a field: "", a place, or a name. `next` is that of the next field without a name.
const JinjaValue& field_value(std::string_view field, const JinjaCall& call, size_t& next) {
  constexpr size_t kPlaces = ~size_t{0};  // fields have places, and no longer an order
  const bool is_name = !field.empty() && field.find_first_not_of(kDigits) != field.npos;
  if (field.find_first_of(":!.[{") != field.npos)
    jinja_fail("the field '{{{}}}' in a format is not supported", field);
  if (is_name) {
    const auto found = std::ranges::find(call.named, field, &JinjaDict::Entry::first);
    if (found == call.named.end()) jinja_fail("a format has no value '{}'", field);
    return found->second;
  }
  size_t place = next;
  if (!field.empty()) {
    if (field.size() > 3 || (next != 0 && next != kPlaces))
      jinja_fail("a format has fields with places and without");
    std::from_chars(field.data(), field.data() + field.size(), place);
    next = kPlaces;
  } else {
    if (next == kPlaces) jinja_fail("a format has fields with places and without");
    ++next;
  }
  if (place >= call.arguments.size()) jinja_fail("a format has too few values");
  return call.arguments[place];
}

}  // namespace

std::string percent_format(std::string_view format, const JinjaValue& values,
                           JinjaRendering& rendering) {
  return PercentFormat(format, values, rendering).run();
}

std::string brace_format(std::string_view format, const JinjaCall& call) {
  std::string text;
  size_t next = 0;
  for (size_t at = format.find_first_of("{}"); at != format.npos; at = format.find_first_of("{}")) {
    text += format.substr(0, at);
    const bool is_doubled = at + 1 < format.size() && format[at + 1] == format[at];
    const size_t end = is_doubled ? at + 1 : format.find('}', at);
    if (format[at] == '}' && !is_doubled) jinja_fail("a format has a single '}}'");
    if (end == format.npos) jinja_fail("a format has a single '{{'");
    const std::string part =
        is_doubled ? std::string(1, format[at])
                   : printed(field_value(format.substr(at + 1, end - at - 1), call, next));
    call.rendering.count_bytes(at + part.size());
    text += part;
    format.remove_prefix(end + 1);
  }
  return text += format;
}

}  // namespace gxp
