// Renders the tree of a template.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "lib/text/byte_span.h"
#include "lib/text/jinja/syntax.h"

namespace gxp {

// What the rendering of one item of a loop has printed.
struct JinjaIteration {
  const JinjaDict* item = nullptr;  // only to be compared: those that the template made are gone
  ByteSpan printed;
};

struct JinjaOutput {
  std::string text;
  std::vector<ByteSpan> generation;        // what each {% generation %} block has printed, in order
  std::vector<JinjaIteration> iterations;  // that printed something of a dict, and not into a text
};

// `line` is kept at the line that is being rendered, so it tells where after a JinjaError. The work
// is bounded: 50 million steps, 1 GiB of text in all, 256 MiB in one piece, and the stack.
JinjaOutput render_jinja(const JinjaBody& body, const JinjaDict& variables, std::time_t now,
                         int& line);

}  // namespace gxp
