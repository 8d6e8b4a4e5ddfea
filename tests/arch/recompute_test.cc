#include "lib/arch/recompute.h"

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Architecture three_blocks(std::string_view family) {
  ModelConfig config;
  config.family = family;
  config.layers = 3;
  return make_architecture(config);
}

TEST_CASE("patterns choose blocks, never the embedding or the head", "[arch]") {
  using Patterns = std::vector<std::string>;
  const auto [patterns, chosen] = GENERATE(table<Patterns, std::vector<int>>({
      {{"*"}, {1, 2, 3}},
      {{"h.1"}, {2}},
      {{"h.[02]"}, {1, 3}},
      {{"h.0", "*.2"}, {1, 3}},
      {{}, {}},
  }));
  const auto by_unit = recompute_by_unit(three_blocks("gpt2"), Recompute::kFull, patterns);
  REQUIRE(by_unit.size() == 5);
  for (int unit = 0; unit < 5; ++unit) {
    const bool expected = std::find(chosen.begin(), chosen.end(), unit) != chosen.end();
    CHECK((by_unit[size_t(unit)] == Recompute::kFull) == expected);
  }
}

TEST_CASE("a pattern that chooses no block is refused with the names there are", "[arch]") {
  const std::string pattern = GENERATE("h.3", "head", "", "H.*");
  CHECK_THROWS_WITH(recompute_by_unit(three_blocks("gpt2"), Recompute::kFull, {"h.0", pattern}),
                    Catch::Contains("none of the units h.0 to h.2"));
}

TEST_CASE("selective keeps attention's output alone, full nothing", "[arch]") {
  const std::string family(GENERATE(from_range(families())).name);
  const UnitSpec block = three_blocks(family).units[1];
  for (const ActivationSpec& saved : block.saved) {
    CHECK(keeps(Recompute::kNone, saved));
    CHECK(keeps(Recompute::kSelective, saved) ==
          (saved.name == "attention" || saved.name == "lse"));
    CHECK_FALSE(keeps(Recompute::kFull, saved));
  }
}

TEST_CASE("what a recomputation needs of scratch is what forward has of it first", "[arch]") {
  const UnitSpec block = three_blocks(std::string(GENERATE(from_range(families())).name)).units[1];
  REQUIRE(block.recompute_scratch.size() < block.forward_scratch.size());
  for (size_t i = 0; i < block.recompute_scratch.size(); ++i)
    CHECK(block.recompute_scratch[i].name == block.forward_scratch[i].name);
}

}  // namespace
}  // namespace gxp
