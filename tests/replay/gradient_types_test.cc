// What gradients of other types than f32 take and send is what the run takes and sends, to the
// byte.
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

std::vector<std::vector<std::string>> all_types() {
  std::vector<std::vector<std::string>> all;
  for (const char* kept : {"fp32", "bf16"}) {
    for (const char* reduced : {"fp32", "bf16"})
      all.push_back({"train.precision=bf16", fmt::format("train.grad_accum_dtype={}", kept),
                     fmt::format("parallel.reduce_dtype={}", reduced)});
  }
  return all;
}

TEST_CASE("memory and traffic of gradients of every type are predicted", "[replay]") {
  const auto [strategy, types, hold, world_size] = GENERATE(from_range(
      combinations(all_strategies(), all_types(), std::vector<std::string>{"true", "false"},
                   std::vector<int>{1, 3, 4})));
  CAPTURE(strategy, types, hold, world_size);
  std::vector<std::string> sets = with_groups(strategy, world_size);
  sets.insert(sets.end(), types.begin(), types.end());
  sets.insert(sets.end(), {"train.grad_accum=2", "parallel.bucket_bytes=20000",
                           "parallel.hold_gradients=" + hold});
  check_as_planned(small_run(sets), world_size);
}

}  // namespace
}  // namespace gxp
