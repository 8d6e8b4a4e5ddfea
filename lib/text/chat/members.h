// Members of the JSON objects of chat data.
#pragma once

#include <string>
#include <string_view>

#include "lib/text/jinja/value.h"

namespace gxp {

// One that is there and not null; null: there is none.
const JinjaValue* find_member(const JinjaDict& object, std::string_view key);
// kCorrupt, beginning with `where`: it is missing, or no text.
const std::string& text_member(const JinjaDict& object, std::string_view key,
                               const std::string& where);

}  // namespace gxp
