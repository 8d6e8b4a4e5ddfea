// A template's source as tokens: Jinja 3.1's, with trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gxp {

enum class JinjaTokenKind {
  kData,        // the text between tags
  kPrintBegin,  // {{
  kPrintEnd,    // }}
  kBlockBegin,  // {%
  kBlockEnd,    // %}
  kName,
  kText,     // the value of a string
  kInteger,  // digits
  kFloat,
  kOperator,
  kEnd,  // of the template: the last token
};

struct JinjaToken {
  JinjaTokenKind kind = JinjaTokenKind::kEnd;
  std::string text{};
  int line = 0;  // from 1
};

// `line` is the line that is being read, so it tells where after a JinjaError. Cost: linear.
std::vector<JinjaToken> tokenize_jinja(std::string_view source, int& line);

}  // namespace gxp
