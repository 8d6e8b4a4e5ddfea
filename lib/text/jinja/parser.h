// Parses a template: the subset of Jinja 3.1 that chat templates use, with loop controls and
// {% generation %} blocks.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lib/text/jinja/syntax.h"

namespace gxp {

struct JinjaTree {
  JinjaBody body{};
  bool has_generation = false;
  std::set<std::string> words{};  // names, attributes and strings that the template has
};

// `line` is the line that is being read, so it tells where after a JinjaError, which says what is
// wrong or not supported.
JinjaTree parse_jinja(std::string_view source, int& line);

}  // namespace gxp
