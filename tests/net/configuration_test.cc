#include "lib/net/store/configuration.h"

#include "tests/catch.h"

using namespace gxp;

TEST_CASE("different configurations are told by key, value and rank", "[net]") {
  const FlatConfiguration common = {{"optim.lr", "0.001"}, {"train.seed", "1"}};
  const FlatConfiguration reordered = {{"train.seed", "1"}, {"optim.lr", "0.001"}};
  const FlatConfiguration other = {{"optim.lr", "0.002"}};
  CHECK(configuration_differences({common, reordered, common}).empty());
  CHECK(configuration_differences({common}).empty());
  CHECK(configuration_differences({common, reordered, other}) ==
        "optim.lr: 0.001 on rank 0, 1, 0.002 on rank 2; "
        "train.seed: 1 on rank 0, 1, absent on rank 2");
}

TEST_CASE("a long list of differences is cut with the number of the rest", "[net]") {
  FlatConfiguration first, second;
  for (int i = 0; i < 40; ++i) {
    first.emplace_back("key" + std::to_string(i), "a");
    second.emplace_back("key" + std::to_string(i), "b");
  }
  CHECK(configuration_differences({first, second}).ends_with("; and 24 more"));
}
