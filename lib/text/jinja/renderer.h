// Renders the tree of a template.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "lib/text/byte_span.h"
#include "lib/text/jinja/syntax.h"

namespace gxp {

struct JinjaOutput {
  std::string text;
  std::vector<ByteSpan> generation;  // what each {% generation %} block has printed, in order
};

// `line` is kept at the line that is being rendered, so it tells where after a JinjaError. The work
// is bounded: 50 million steps, 1 GiB of text in all, 256 MiB in one piece, and the stack.
JinjaOutput render_jinja(const JinjaBody& body, const JinjaDict& variables, std::time_t now,
                         int& line);

}  // namespace gxp
