// Other ways to train a run: all can be planned, and train the same.
#include "lib/replay/run_variants.h"

#include <set>

#include "lib/program/run_plan.h"
#include "tests/catch.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

using Key = std::tuple<std::string, int, int, std::string, std::string, std::string>;

Key key_of(const RunConfig& run) {
  return {run.parallel.strategy, run.parallel.shard_size, run.train.micro_batch,
          run.train.recompute,   run.offload.optimizer,   run.offload.parameters};
}

TEST_CASE("every variant of a run can be planned, and has its rows", "[forecast]") {
  const int world_size = GENERATE(1, 2, 6);
  const auto sets = GENERATE(
      std::vector<std::string>{}, std::vector<std::string>{"optim.name=muon"},
      std::vector<std::string>{"optim.name=sgd"},
      std::vector<std::string>{"parallel.optimizer_over_replicas=true", "parallel.strategy=zero2"},
      std::vector<std::string>{"offload.optimizer=file", "offload.path=unused",
                               "offload.ratio=0.5"});
  RunConfig config = small_run(sets);
  config.train.grad_accum = 6;
  std::set<Key> seen;
  for (const RunConfig& variant : run_variants(config, world_size)) {
    CAPTURE(world_size, sets, variant.parallel.strategy, variant.parallel.shard_size);
    CHECK_NOTHROW(plan_run(variant, world_size));
    CHECK(variant.train.micro_batch * variant.train.grad_accum == 6);
    CHECK(seen.insert(key_of(variant)).second);
  }
  CHECK(seen.size() >= 4 * 3);  // micro-batches and recomputation
}

TEST_CASE("a run that fixes its sums keeps its micro-batches", "[forecast]") {
  const RunConfig config = small_run({"train.deterministic=any-world-size", "train.grad_accum=2"});
  for (const RunConfig& variant : run_variants(config, 2))
    CHECK(variant.train.micro_batch == config.train.micro_batch);
}

}  // namespace
}  // namespace gxp
