// Jinja's operators, and what is in a value: Python's, in its sandbox. All throw JinjaError for values
// that they do not take.
#pragma once

#include <string_view>

#include "lib/text/jinja/function.h"
#include "lib/text/jinja/value.h"

namespace gxp {

// + - * / // % **
JinjaValue apply_jinja(std::string_view operation, const JinjaValue& left, const JinjaValue& right,
                       JinjaRendering& rendering);
JinjaValue negated(const JinjaValue& value);
// == != < <= > >= in, not in
bool compare_jinja(std::string_view operation, const JinjaValue& left, const JinjaValue& right);

// value.name: a method before an item. An attribute that is not there is undefined.
JinjaValue attribute_of(const JinjaValue& value, std::string_view name);
// value[key]: an item before a method.
JinjaValue item_of(const JinjaValue& value, const JinjaValue& key);
// value[start:stop:step]; each may be none.
struct JinjaSlice {
  JinjaValue start = JinjaNone{}, stop = JinjaNone{}, step = JinjaNone{};
};
JinjaValue slice_of(const JinjaValue& value, const JinjaSlice& slice);

}  // namespace gxp
