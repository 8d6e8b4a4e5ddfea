#include "lib/base/text/utf8.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("text with a byte order mark becomes UTF-8 without it", "[base]") {
  using namespace std::string_literals;
  const auto [text, converted] = GENERATE(table<std::string, std::string>({
      {"", ""},
      {"GPU0\n", "GPU0\n"},
      {"\xef\xbb\xbfGPU0", "GPU0"},
      {"\xff\xfeG\0P\0"s, "GP"},
      {"\xfe\xff\0G\0P"s, "GP"},
      {"\xff\xfe\xe4\0\xac\x20\x3d\xd8\0\xde"s, "\u00e4\u20ac\U0001f600"},
      {"\xff\xfe\x3d\xd8G\0"s, "\ufffdG"},  // half of a pair
      {"\xff\xfe\0\xdeG\0"s, "\ufffdG"},
      {"\xff\xfeG\0P"s, "G\ufffd"},
      {"\xff\xfe"s, ""},
  }));
  CHECK(to_utf8(text) == converted);
}

}  // namespace gxp
