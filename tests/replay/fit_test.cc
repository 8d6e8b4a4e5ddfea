#include "lib/replay/fit.h"

#include "lib/replay/memory.h"
#include "tests/catch.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

uint64_t peak_on(const RunConfig& config, int world_size) {
  const RunPlan plan = plan_run(config, world_size);
  return total_of(memory_of_run(plan, network_of("shm", world_size), 0, {}).peak);
}

std::vector<CostedPlan<RunConfig>> ways(const RunConfig& config, int world_size,
                                        uint64_t limit_bytes) {
  return runs_that_fit(config, world_size, limit_bytes,
                       [&](const RunConfig& run) { return peak_on(run, world_size); });
}

TEST_CASE("every way that is offered fits, and there are up to three", "[forecast]") {
  const int world_size = GENERATE(1, 2, 4);
  const double part = GENERATE(0.9, 0.7, 0.5);
  const RunConfig config = small_run({"train.micro_batch=8"});
  const auto limit = uint64_t(double(peak_on(config, world_size)) * part);
  const auto found = ways(config, world_size, limit);
  CAPTURE(world_size, part);
  CHECK(!found.empty());
  CHECK(found.size() <= 3);
  for (const auto& way : found) CHECK(way.cost.bytes <= limit);
}

TEST_CASE("the bytes of a way are the peak of the run with all its micro-batches", "[forecast]") {
  const RunConfig config = small_run({"train.micro_batch=8", "train.grad_accum=3"});
  for (const auto& way : ways(config, 2, peak_on(config, 2) * 8 / 10))
    CHECK(peak_on(way.plan, 2) == way.cost.bytes);
}

TEST_CASE("nothing fits into nothing", "[forecast]") {
  CHECK(ways(small_run({}), 2, 1000).empty());
}

TEST_CASE("state that an optimizer needs whole is not offered for offload", "[forecast]") {
  const RunConfig config = small_run({"optim.name=muon"});
  for (const auto& way : ways(config, 1, UINT64_MAX)) {
    for (const ChangedSetting& change : way.changes)
      CHECK_THAT(std::string(change.name), !Catch::Contains("offload"));
  }
}

}  // namespace
}  // namespace gxp
