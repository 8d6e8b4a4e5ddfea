#include "lib/base/text/near_match.h"

#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

const std::vector<std::string> kNames = {"micro_batch", "steps", "seed", "lr", "threads"};

}  // namespace

TEST_CASE("edit distance counts insertions, deletions, substitutions and swaps", "[base]") {
  const auto [a, b, distance] =
      GENERATE(table<std::string, std::string, size_t>({{"", "", 0},
                                                        {"", "abc", 3},
                                                        {"abc", "", 3},
                                                        {"steps", "steps", 0},
                                                        {"setps", "steps", 1},
                                                        {"kitten", "sitting", 3},
                                                        {"ca", "abc", 3}}));
  CAPTURE(a, b);
  CHECK(edit_distance(a, b) == distance);
  CHECK(edit_distance(b, a) == distance);
}

TEST_CASE("a misspelt name finds the one that was meant", "[base]") {
  const auto [word, match] =
      GENERATE(table<std::string, std::string>({{"setps", "steps"},
                                                {"microbatch", "micro_batch"},
                                                {"thread", "threads"},
                                                {"sed", "seed"},
                                                {"hidden", ""},
                                                {"", ""}}));
  CAPTURE(word);
  CHECK(near_match(word, kNames) == match);
  CHECK(did_you_mean(word, kNames) == (match.empty() ? "" : "; did you mean '" + match + "'?"));
}

}  // namespace gxp
