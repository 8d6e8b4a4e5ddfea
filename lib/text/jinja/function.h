// What templates call: filters, tests, methods of texts and dicts, and global functions, each a row of
// a table.
#pragma once

#include <array>
#include <ctime>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/text/jinja/value.h"

namespace gxp {

// What one rendering has of its own, with limits on its work: a template may be hostile.
class JinjaRendering {
 public:
  explicit JinjaRendering(std::time_t now) : now_(now) {}

  // JinjaError: too many steps, or too many bytes made in all.
  void count_step();
  void count_bytes(size_t bytes);

  // It lives as long as the rendering.
  JinjaValue make_namespace(JinjaDict attributes);
  [[nodiscard]] std::time_t now() const { return now_; }

 private:
  std::time_t now_;
  size_t steps_ = 0;
  size_t bytes_ = 0;
  std::deque<JinjaNamespace> namespaces_;
};

struct JinjaCall {
  JinjaRendering& rendering;
  const JinjaValue& subject;  // of a filter, test or method
  std::vector<JinjaValue> arguments{};
  std::vector<JinjaDict::Entry> named{};
};

// A call's arguments by parameter. Null, and the default where one is given: there is none.
class JinjaArguments {
 public:
  const JinjaValue*& operator[](size_t place) { return values_[place]; }
  const JinjaValue* operator[](size_t place) const { return values_[place]; }
  // JinjaError: the argument is of another type.
  [[nodiscard]] std::string_view text(size_t place, std::string_view otherwise = "") const;
  [[nodiscard]] int64_t integer(size_t place, int64_t otherwise) const;
  [[nodiscard]] bool is_true(size_t place, bool otherwise = false) const;

 private:
  std::array<const JinjaValue*, 4> values_{};
};

struct JinjaFunction {
  static constexpr size_t kAny = 9;  // required: the function looks at the call's arguments itself

  std::string_view name;
  std::array<std::string_view, 4> parameters;  // "" after the last; "_": has no name for callers
  size_t required;
  JinjaValue (*run)(const JinjaCall& call, const JinjaArguments& arguments);
};

// JinjaError: wrong arguments, or what the function says.
JinjaValue run_jinja(const JinjaFunction& function, const JinjaCall& call);

// JinjaError: there is none that is supported.
const JinjaFunction& find_jinja_filter(std::string_view name);
const JinjaFunction& find_jinja_test(std::string_view name);
// Null: the value has no attribute of that name. JinjaError: it has one in Python, which is not
// supported here.
const JinjaFunction* find_jinja_method(const JinjaValue& value, std::string_view name);
// Null: there is none.
const JinjaFunction* find_jinja_global(std::string_view name);

}  // namespace gxp
