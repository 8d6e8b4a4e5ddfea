#include "lib/base/json/json.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {

// Each takes a minute or more if the parent is looked through for each object in it.
TEST_CASE("a megabyte of small objects is read in linear time", "[base]") {
  std::string list = "[";
  std::string named = "{";
  for (int i = 0; i < 350'000; ++i) {
    list += i == 0 ? "{}" : ",{}";
    named += fmt::format("{}\"{}\":{{}}", i == 0 ? "" : ",", i);
  }
  CHECK(parse_json(list + "]", "list").size() == 350'000);
  CHECK(parse_json(named + "}", "named").size() == 350'000);
}

TEST_CASE("JSON may be 64 deep, and each number keeps its kind", "[base]") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK_NOTHROW(parse_json(nested(65), "deep"));  // the innermost is empty
  CHECK(error_of([&] { parse_json(nested(66), "deep"); }).kind == ErrorKind::kCorrupt);
  const Json value = parse_json(R"([null, true, -1, 18446744073709551615, 0.5, "x"])", "kinds");
  CHECK(value.dump() == R"([null,true,-1,18446744073709551615,0.5,"x"])");
  CHECK(value[3].is_number_unsigned());
  CHECK(error_of([] { parse_json("[1] 2", "tail"); }).kind == ErrorKind::kCorrupt);
  CHECK(error_of([] { parse_json("1e999", "huge"); }).kind == ErrorKind::kCorrupt);
}

}  // namespace gxp
