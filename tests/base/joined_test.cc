#include "lib/base/text/joined.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("a list is joined as fmt::join() does it", "[base]") {
  CHECK(joined(std::vector<std::string>{"a", "", "c"}, ", ") == "a, , c");
  CHECK(joined(std::set<std::string_view>{"b", "a"}, " and ") == "a and b");
  CHECK(joined(std::vector<uint64_t>{0, UINT64_MAX}, "x") == "0x18446744073709551615");
  CHECK(joined(std::vector<int8_t>{-1}, ", ") == "-1");
  CHECK(joined(std::vector<const char*>{}, ", ").empty());
}

}  // namespace gxp
