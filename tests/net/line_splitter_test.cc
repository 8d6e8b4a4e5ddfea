#include "lib/net/launch/child_process.h"

#include <vector>

#include "tests/catch.h"

using namespace gxp;

TEST_CASE("lines come out whole, however the bytes arrive", "[net]") {
  const std::string text = "one\n\ntwo three\nlast";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at += piece) {
      splitter.add(std::string_view(text).substr(at, piece));
      while (auto line = splitter.next()) lines.push_back(*line);
    }
    CHECK(lines == std::vector<std::string>{"one\n", "\n", "two three\n"});
    CHECK(splitter.rest() == "last");
    CHECK(splitter.rest().empty());
  }
}

TEST_CASE("a stream without newlines is cut and loses nothing", "[net]") {
  LineSplitter splitter;
  splitter.add(std::string(LineSplitter::kMaxLineBytes + 5, 'x'));
  CHECK(splitter.next()->size() == LineSplitter::kMaxLineBytes);
  CHECK_FALSE(splitter.next().has_value());
  CHECK(splitter.rest() == "xxxxx");
}
