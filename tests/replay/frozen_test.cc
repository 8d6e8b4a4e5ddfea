// What frozen tensors save is predicted, to the byte.
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

TEST_CASE("memory and traffic of a run with frozen tensors are predicted", "[replay]") {
  const auto [frozen, strategy, optimizer, world_size] = GENERATE(from_range(combinations(
      std::vector<std::string>{R"(["w?e.weight", "h.0.*"])", R"(["h.*.attn.*", "*.bias"])",
                               R"(["h.1.*", "ln_f.*"])", R"(["w?e.weight", "h.*"])"},
      all_strategies(), std::vector<std::string>{"adamw", "muon"}, std::vector<int>{1, 4})));
  CAPTURE(frozen, strategy, optimizer, world_size);
  std::vector<std::string> sets = with_groups(strategy, world_size);
  sets.insert(sets.end(), {"train.frozen=" + frozen, "model.layers=2", "train.precision=bf16",
                           "optim.name=" + optimizer, "parallel.bucket_bytes=20000"});
  check_as_planned(small_run(sets), world_size);
}

}  // namespace
}  // namespace gxp
