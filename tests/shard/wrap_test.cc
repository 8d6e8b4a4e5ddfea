#include "lib/shard/wrap.h"

#include "lib/shard/layout.h"
#include "tests/catch.h"

namespace gxp {
namespace {

// embedding, h.0 to h.3, head
const Architecture& four_blocks() {
  static const Architecture kSample =
      make_architecture({.vocab_size = 61, .context = 24, .hidden = 20, .layers = 4, .heads = 4});
  return kSample;
}

std::vector<int> wraps(const WrapSettings& settings) {
  return first_units_of_wraps(four_blocks(), settings);
}

TEST_CASE("each policy wraps the units that it says", "[shard]") {
  const uint64_t block = four_blocks().units[1].parameter_count();
  const uint64_t all = four_blocks().parameter_count();
  using Units = std::vector<int>;
  CHECK(wraps({}) == Units{0, 1, 2, 3, 4, 5});
  CHECK(wraps({.policy = WrapPolicy::kNone}) == Units{0});
  CHECK(wraps({.policy = WrapPolicy::kSize, .min_params = 1}) == Units{0, 1, 2, 3, 4, 5});
  CHECK(wraps({.policy = WrapPolicy::kSize, .min_params = block}) == Units{0, 2, 3, 4, 5});
  CHECK(wraps({.policy = WrapPolicy::kSize, .min_params = 2 * block}) == Units{0, 3, 5});
  CHECK(wraps({.policy = WrapPolicy::kSize, .min_params = all}) == Units{0});
  CHECK(wraps({.policy = WrapPolicy::kMatch, .units = {"h.[13]"}}) == Units{0, 2, 4});
  CHECK(wraps({.policy = WrapPolicy::kMatch, .units = {"head", "h.0", "h.0"}}) == Units{0, 1, 5});
}

TEST_CASE("patterns that name no unit are refused", "[shard]") {
  CHECK_THROWS_WITH(wraps({.policy = WrapPolicy::kMatch, .units = {"h.1", "h.9"}}),
                    Catch::Contains("'h.9'") && Catch::Contains("embedding to head"));
  CHECK_THROWS_WITH(wraps({.policy = WrapPolicy::kMatch}), Catch::Contains("names no units"));
}

TEST_CASE("the shards of wraps hold every element once", "[shard]") {
  const Architecture model = four_blocks();
  const ParameterLayout layout = make_layout(model, 4, {0, 3});
  size_t held = 0;
  for (int shard = 0; shard < 4; ++shard) {
    for (const TensorPart& part : make_parts(layout, 4, shard)) held += part.elements.count;
  }
  CHECK(held == model.parameter_count());
}

}  // namespace
}  // namespace gxp
