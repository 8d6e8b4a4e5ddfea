#include "lib/base/text/visible_text.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("what a terminal would obey is shown instead", "[base]") {
  const auto [text, shown] = GENERATE(table<std::string, std::string>({
      {"", ""},
      {"plain, \\x1b and \u00e9\u20ac\U0001f600", "plain, \\x1b and \u00e9\u20ac\U0001f600"},
      {"\x1b[2J\a\r\n\t\x7f", "\\x1b[2J\\x07\\x0d\\x0a\\x09\\x7f"},
      {"\u0080 \u009b31m \u00a0", "\\xc2\\x80 \\xc2\\x9b31m \u00a0"},
      {"\x80 \xff", "\\x80 \\xff"},
      {"\xc3 \xe2\x82 \xf0\x9f\x98", "\\xc3 \\xe2\\x82 \\xf0\\x9f\\x98"},
      {"\xc0\x9b \xe0\x9b\x9b \xf0\x80\x80\x9b", "\\xc0\\x9b \\xe0\\x9b\\x9b \\xf0\\x80\\x80\\x9b"},
      {"\xed\xa0\x80 \xf4\x90\x80\x80", "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80"},
  }));
  CHECK(visible(text) == shown);
}

TEST_CASE("control characters that are meant stay, no others", "[base]") {
  CHECK(visible("a\nb\tc\r\u009b", "\n\t") == "a\nb\tc\\x0d\\xc2\\x9b");
  CHECK(visible(std::string_view("\0", 1), "\n") == "\\x00");
}

}  // namespace gxp
