#include "lib/base/text/toml_text.h"

#include <string>

#include "tests/catch.h"

namespace gxp {
namespace {

std::string dots(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "a.";
  return text;
}

}  // namespace

TEST_CASE("what toml++ must not be given is found where it stands", "[base]") {
  const auto [text, line, what] = GENERATE(table<std::string, int, std::string>({
      {"x = 1\n [[ =]]", 2, "a name must follow '['"},
      {"[\xcf\x9f]", 1, "a name must follow '['"},
      {"x = 1\r\n\r\n[", 3, "a name must follow '['"},
      {"x\xcf\x9f = 1", 1, "non-ASCII letters must be quoted"},
      {"x = \"\\\"\xcf\x9f\"\xcf\x9f", 1, "non-ASCII letters must be quoted"},
      {"x = 'a\\'\xcf\x9f", 1, "non-ASCII letters must be quoted"},
      {"x = 2'\xc3\xb6'", 1, "non-ASCII letters must be quoted"},
      {"x = 2='\xc3\xb6'", 1, "non-ASCII letters must be quoted"},
      {"x = 2['\xc3\xb6']", 1, "non-ASCII letters must be quoted"},
      {"x = 2\x0f'\xc3\xb6'", 1, "non-ASCII letters must be quoted"},
      {"y = \"\"\"\nz\"\"\"", 1, "a string must be on one line"},
      {"y = '''z'''", 1, "a string must be on one line"},
      {"x = 1\n" + dots(300'000) + "a = 1", 2, "a key may have 9 parts at most"},
      {"[ " + dots(9) + "a]", 1, "a key may have 9 parts at most"},
      {"x = { 'b' . " + dots(8) + "a = 1 }", 1, "a key may have 9 parts at most"},
  }));
  CAPTURE(text);
  const auto flaw = find_toml_flaw(text);
  REQUIRE(flaw);
  CHECK(flaw->line == line);
  CHECK(flaw->what == what);
}

TEST_CASE("sound TOML has no flaw", "[base]") {
  const std::string text = GENERATE(
      as<std::string>{}, "",
      "\xef\xbb\xbf# gr\xc3\xb6\xc3\x9f"
      "er\nx = 1",
      "[ a ]\n[[\"b\xc3\xb6\"]]\nx = '\xc3\xb6' # '\"\xc3\xb6",
      "x = [\n  'a', \"b'\\\\\",\n]\ny = ''\nz = \"\"", "x = '# \xc3\xb6'",
      dots(8) + "a = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5] # a.b.c.d.e.f.g.h.i.j.k",
      "x = 'a.b.c.d.e.f.g.h.i.j.k'", "a.b = { c = 1, \"d\" = [-1.5, '\xc3\xb6'] } # \xc3\xb6");
  CHECK_FALSE(find_toml_flaw(text));
}

}  // namespace gxp
