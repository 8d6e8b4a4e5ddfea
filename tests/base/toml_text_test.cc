#include "lib/base/toml_text.h"

#include <string>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("what toml++ must not be given is found where it stands", "[base]") {
  const auto [text, line, what] = GENERATE(table<std::string, int, std::string>({
      {"x = 1\n [[ =]]", 2, "a name must follow '['"},
      {"[\xcf\x9f]", 1, "a name must follow '['"},
      {"x = 1\r\n\r\n[", 3, "a name must follow '['"},
      {"x\xcf\x9f = 1", 1, "letters beyond ASCII must stand in quotes"},
      {"x = \"\\\"\xcf\x9f\"\xcf\x9f", 1, "letters beyond ASCII must stand in quotes"},
      {"x = 'a\\'\xcf\x9f", 1, "letters beyond ASCII must stand in quotes"},
      {"x = 2'\xc3\xb6'", 1, "letters beyond ASCII must stand in quotes"},
      {"x = 2='\xc3\xb6'", 1, "letters beyond ASCII must stand in quotes"},
      {"x = 2['\xc3\xb6']", 1, "letters beyond ASCII must stand in quotes"},
      {"x = 2\x0f'\xc3\xb6'", 1, "letters beyond ASCII must stand in quotes"},
      {"y = \"\"\"\nz\"\"\"", 1, "a text must be of one line"},
      {"y = '''z'''", 1, "a text must be of one line"},
  }));
  CAPTURE(text);
  const auto flaw = find_toml_flaw(text);
  REQUIRE(flaw);
  CHECK(flaw->line == line);
  CHECK(flaw->what == what);
}

TEST_CASE("sound TOML has no flaw", "[base]") {
  const std::string text =
      GENERATE("",
               "\xef\xbb\xbf# gr\xc3\xb6\xc3\x9f"
               "er\nx = 1",
               "[ a ]\n[[\"b\xc3\xb6\"]]\nx = '\xc3\xb6' # '\"\xc3\xb6",
               "x = [\n  'a', \"b'\\\\\",\n]\ny = ''\nz = \"\"", "x = '# \xc3\xb6'",
               "a.b = { c = 1, \"d\" = [-1.5, '\xc3\xb6'] } # \xc3\xb6");
  CHECK_FALSE(find_toml_flaw(text));
}

}  // namespace gxp
