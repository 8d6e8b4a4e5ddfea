#include "lib/topo/model/text_parts.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("a whole number is all of a text, a leading one its start", "[topo]") {
  CHECK(whole_number<int>("42") == 42);
  CHECK(whole_number<double>("2.5") == 2.5);
  CHECK(whole_number<uint32_t>("ff", 16) == 255u);
  const std::string text = GENERATE("", "x", "4x", " 4", "99999999999999999999");
  CAPTURE(text);
  CHECK_FALSE(whole_number<int>(text));
  size_t length = 0;
  CHECK(leading_number<double>("16.0 GT/s", &length) == 16);
  CHECK(length == 4);
  CHECK(leading_number<int>("GT/s", &length) == 0);
  CHECK(length == 0);
}

TEST_CASE("a text is split at each separator, and a value ends with its line", "[topo]") {
  std::vector<std::string> pieces;
  for (const std::string_view piece : split("a,,b,", ',')) pieces.emplace_back(piece);
  CHECK(pieces == std::vector<std::string>{"a", "", "b", ""});
  CHECK(split("", ',').empty());
  CHECK(value_behind("Node 0 MemTotal:  12 kB\nNode 0 MemFree: 1 kB\n", "MemTotal:") == "12 kB");
  CHECK(value_behind("MemFree: 1 kB", "MemTotal:").empty());
}

}  // namespace gxp
