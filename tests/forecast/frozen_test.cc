// What frozen tensors save is predicted, to the byte.
#include "lib/forecast/memory.h"
#include "lib/plan/run_plan.h"
#include "tests/catch.h"
#include "tests/forecast/runs.h"

namespace gxp {
namespace {

TEST_CASE("memory and traffic of a run with frozen tensors are predicted", "[forecast]") {
  const std::string frozen = GENERATE(R"(["w?e.weight", "h.0.*"])", R"(["h.*.attn.*", "*.bias"])",
                                      R"(["h.1.*", "ln_f.*"])", R"(["w?e.weight", "h.*"])");
  const auto strategy = GENERATE(from_range(all_strategies()));
  const std::string optimizer = GENERATE("adamw", "muon");
  const int world_size = GENERATE(1, 4);
  CAPTURE(frozen, strategy, optimizer, world_size);
  std::vector<std::string> sets = with_groups(strategy, world_size);
  sets.insert(sets.end(), {"train.frozen=" + frozen, "model.layers=2", "train.precision=bf16",
                           "optim.name=" + optimizer, "parallel.bucket_bytes=20000"});
  const RunConfig config = small_run(sets);
  const RunPlan plan = plan_run(config, world_size);
  const Network network = network_of("inproc", world_size);
  const std::vector<OpTraffic> traffic = traffic_of(plan.step.program, network);
  const RunMeasure run = measure_run(config, world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    CHECK(run.peaks[size_t(rank)] == memory_of_run(plan, network, rank, 0).peak);
    CHECK(run.sent[size_t(rank)] == sent_by(traffic, rank));
  }
}

}  // namespace
}  // namespace gxp
