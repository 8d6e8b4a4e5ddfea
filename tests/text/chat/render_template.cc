// Renders templates for tests/text/peers/chat_templates.py: each line of standard input is
// {"template": ..., "variables": {...}}; each line of the answer {"text": ..., "spans": [[begin, end]]}
// or {"error": ...}.
#include <iostream>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/jinja/template.h"
#include "lib/text/jinja/written.h"

namespace {

nlohmann::json answer_to(const std::string& line) {
  using namespace gxp;
  try {
    const JinjaValue request = parse_jinja_json(line, "request");
    const JinjaTemplate opened(*request.dict()->find("template")->text(), "template");
    const JinjaOutput output = opened.render(*request.dict()->find("variables")->dict(), 0);
    nlohmann::json spans = nlohmann::json::array();
    for (const ByteSpan& span : output.generation) spans.push_back({span.begin, span.end});
    return {{"text", output.text}, {"spans", spans}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer_to(line).dump() << std::endl;
}
