#include "lib/config/profile_range.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("two steps in their order are a range to profile", "[config]") {
  const auto range = parse_profile_range("10-12");
  REQUIRE(range);
  CHECK(range->first == 10);
  CHECK(range->last == 12);
  CHECK(parse_profile_range("7-7"));
}

TEST_CASE("anything else is no range", "[config]") {
  const char* text = GENERATE("", "10", "10-", "-12", "0-3", "12-10", "10-12x", "10 - 12", "10--12",
                              "1-99999999999", "+1-2");
  CAPTURE(text);
  CHECK_FALSE(parse_profile_range(text));
}

}  // namespace gxp
