#include "lib/arch/recompute.h"

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Architecture three_blocks(std::string_view family, KeptOutputs kept = KeptOutputs::kNone) {
  ModelConfig config;
  config.family = family;
  config.layers = 3;
  return make_architecture(config, DType::kF32, kept);
}

std::vector<std::string> names_of(const std::vector<ActivationSpec>& specs) {
  std::vector<std::string> names;
  for (const ActivationSpec& spec : specs) names.push_back(spec.name);
  return names;
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
  const UnitSpec block = three_blocks(family, KeptOutputs::kAll).units[1];
  for (const ActivationSpec& saved : block.saved) {
    CHECK(keeps(Recompute::kNone, saved));
    CHECK(keeps(Recompute::kSelective, saved) ==
          (saved.name == "attention" || saved.name == "lse"));
    CHECK_FALSE(keeps(Recompute::kFull, saved));
  }
}

TEST_CASE("the outputs of norms and activation functions are saved as asked, else scratch",
          "[arch]") {
  using Names = std::vector<std::string>;
  const auto [kept, saved, forward] = GENERATE(table<KeptOutputs, Names, Names>(
      {{KeptOutputs::kNone, {}, {"activated", "normed"}},
       {KeptOutputs::kNorms, {"normed_1", "normed_2"}, {"activated"}},
       {KeptOutputs::kAll, {"normed_1", "normed_2", "activated"}, {}}}));
  const Family& family = GENERATE(from_range(families()));
  CAPTURE(family.name);
  Names expected = names_of(three_blocks(family.name).units[1].saved);
  const UnitSpec block = three_blocks(family.name, kept).units[1];
  expected.insert(expected.end(), saved.begin(), saved.end());
  if (family.kind.one_norm) std::erase(expected, "normed_2");
  CHECK(names_of(block.saved) == expected);
  Names scratch = names_of(block.forward_scratch);
  std::erase(scratch, "branch");  // where outputs are not added directly
  CHECK(scratch == forward);
  for (const auto* list : {&block.recompute_scratch, &block.backward_scratch}) {
    const Names names = names_of(*list);
    CHECK((std::ranges::find(names, "normed") != names.end()) == (kept == KeptOutputs::kNone));
  }
}

}  // namespace
}  // namespace gxp
