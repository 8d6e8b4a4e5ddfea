#include "lib/base/text/ascii.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("letters of ASCII become small, no others", "[base]") {
  CHECK(lower_case("0000:AF:00.0 Zz \xc3\x84") == "0000:af:00.0 zz \xc3\x84");
}

TEST_CASE("blanks around text go, those in it stay", "[base]") {
  const auto [text, expected] = GENERATE(
      table<std::string, std::string>({{"", ""}, {" \t\r\n", ""}, {" a b\n", "a b"}, {"a", "a"}}));
  CHECK(trimmed(text) == expected);
}

}  // namespace gxp
