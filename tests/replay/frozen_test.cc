// What frozen tensors save is predicted, to the byte.
#include "tests/catch.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

TEST_CASE("memory and traffic of a run with frozen tensors are predicted", "[replay]") {
  const std::string frozen = GENERATE(R"(["w?e.weight", "h.0.*"])", R"(["h.*.attn.*", "*.bias"])",
                                      R"(["h.1.*", "ln_f.*"])", R"(["w?e.weight", "h.*"])");
  const auto strategy = GENERATE(from_range(all_strategies()));
  const std::string optimizer = GENERATE("adamw", "muon");
  const int world_size = GENERATE(1, 4);
  CAPTURE(frozen, strategy, optimizer, world_size);
  std::vector<std::string> sets = with_groups(strategy, world_size);
  sets.insert(sets.end(), {"train.frozen=" + frozen, "model.layers=2", "train.precision=bf16",
                           "optim.name=" + optimizer, "parallel.bucket_bytes=20000"});
  check_as_planned(small_run(sets), world_size);
}

}  // namespace
}  // namespace gxp
