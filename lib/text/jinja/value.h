// Values of chat templates: Python's, as far as templates see them.
//
// Values are immutable, so copies share their content; only generators and namespaces have a state. A
// list or dict is at most kMaxJinjaDepth deep and, with all that it contains, holds at most
// kMaxJinjaItems values, however often it contains the same one. So whatever walks a value ends, and
// its recursion is bounded.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace gxp {

// What is wrong with a template, or with what it does. JinjaTemplate adds the line and makes an Error
// of it.
class JinjaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void jinja_fail(fmt::format_string<Args...> format, Args&&... args) {
  throw JinjaError(fmt::vformat(format, fmt::make_format_args(args...)));
}

inline constexpr uint32_t kMaxJinjaDepth = 100;
inline constexpr size_t kMaxJinjaItems = 20'000'000;

struct JinjaUndefined {
  std::shared_ptr<const std::string> why{};  // for messages: "'tools' is undefined"; may be null
};
struct JinjaNone {};
struct JinjaList;
class JinjaDict;
struct JinjaNamespace;
struct JinjaMacro;     // syntax.h
struct JinjaFunction;  // function.h

class JinjaValue {
 public:
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<JinjaList>;
  using Dict = std::shared_ptr<const JinjaDict>;

  JinjaValue() = default;  // undefined
  JinjaValue(JinjaUndefined value) : data_(std::move(value)) {}
  JinjaValue(JinjaNone value) : data_(value) {}
  template <std::same_as<bool> Truth>
  JinjaValue(Truth value) : data_(value) {}
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) JinjaValue(Number value) : data_(int64_t(value)) {}
  JinjaValue(double value) : data_(value) {}
  JinjaValue(std::string value) : data_(std::make_shared<const std::string>(std::move(value))) {}
  JinjaValue(std::string_view value) : JinjaValue(std::string(value)) {}
  JinjaValue(const char* value) : JinjaValue(std::string(value)) {}
  JinjaValue(JinjaList value);  // JinjaError: too deep or too large; so are dicts
  JinjaValue(JinjaDict value);
  JinjaValue(JinjaNamespace* value) : data_(value) {}  // borrowed from the rendering
  JinjaValue(const JinjaMacro* value) : data_(value) {}
  JinjaValue(const JinjaFunction* value) : data_(value) {}
  // A text that jinja2 takes for HTML (its Markup): where it is joined by '+', other texts are escaped.
  static JinjaValue markup(std::string text);

  // Null: it is something else.
  [[nodiscard]] const std::string* text() const;  // also of markup
  [[nodiscard]] bool is_markup() const;
  [[nodiscard]] const JinjaList* list() const;
  [[nodiscard]] const JinjaDict* dict() const;
  [[nodiscard]] JinjaNamespace* as_namespace() const;
  [[nodiscard]] const JinjaMacro* macro() const;
  [[nodiscard]] const JinjaFunction* function() const;
  [[nodiscard]] const JinjaUndefined* undefined() const;
  [[nodiscard]] bool is_none() const { return std::holds_alternative<JinjaNone>(data_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
  [[nodiscard]] bool is_float() const { return std::holds_alternative<double>(data_); }
  // Python's booleans are whole numbers, and these are numbers.
  [[nodiscard]] std::optional<int64_t> integer() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] List shared_list() const;  // null: no list

 private:
  struct Markup {
    Text text;
  };
  std::variant<JinjaUndefined, JinjaNone, bool, int64_t, double, Text, Markup, List, Dict,
               JinjaNamespace*, const JinjaMacro*, const JinjaFunction*>
      data_;
};

enum class JinjaListKind { kList, kTuple, kRange, kView, kGenerator };

struct JinjaList {
  JinjaListKind kind = JinjaListKind::kList;
  std::vector<JinjaValue> items{};
  size_t taken = 0;  // of a generator's items, which are there once
  uint32_t depth = 0;
  size_t weight = 0;
};

// In the order of insertion; keys are texts.
class JinjaDict {
 public:
  using Entry = std::pair<std::string, JinjaValue>;

  [[nodiscard]] const JinjaValue* find(std::string_view key) const;  // null: none
  void set(std::string_view key, JinjaValue value);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  uint32_t depth = 0;
  size_t weight = 0;

 private:
  [[nodiscard]] size_t place_of(std::string_view key) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> places_;  // empty while a search is as fast
};

struct JinjaNamespace {
  JinjaDict attributes;
};

// "text", "list", for messages.
std::string_view kind_of(const JinjaValue& value);
bool is_true(const JinjaValue& value);
// Python's ==.
bool are_equal(const JinjaValue& left, const JinjaValue& right);
// Python's left < right. JinjaError: these have no order.
bool is_less(const JinjaValue& left, const JinjaValue& right);
// JinjaError: Python refuses to look for it in a dict.
void check_hashable(const JinjaValue& key);
// What an iteration takes: a dict's keys, a text's characters; a generator's rest, which it then no
// longer has. JinjaError: it has no items.
JinjaValue::List items_of(const JinjaValue& value);
// The number of items or characters. JinjaError: it has none.
size_t length_of(const JinjaValue& value);

}  // namespace gxp
