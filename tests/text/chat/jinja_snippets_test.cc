#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/text/chat/chat_samples.h"

namespace gxp {

TEST_CASE("templates render what jinja2 renders, and fail where it fails", "[text]") {
  const JinjaValue table = json_sample("jinja_snippets.json");
  size_t rendered = 0;
  for (const JinjaValue& sample : at(table, "cases").list()->items) {
    const std::string& source = *at(sample, "template").text();
    const size_t variables = size_t(*at(sample, "variables").integer());
    CAPTURE(source, variables);
    JinjaOutput output;
    const Caught caught = error_of([&] {
      output = JinjaTemplate(source, "template")
                   .render(*at(table, "variables").list()->items[variables].dict(), 0);
    });
    CAPTURE(caught.message);
    const JinjaValue* text = sample.dict()->find("text");
    CHECK(caught.kind.has_value() == (text == nullptr));
    if (text == nullptr || caught.kind) continue;
    ++rendered;
    CHECK(output.text == *text->text());
    CHECK(words_for(output.generation) == words_for(at(sample, "spans")));
  }
  CHECK(rendered > 250);
}

}  // namespace gxp
