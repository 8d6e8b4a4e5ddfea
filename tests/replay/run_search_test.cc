#include "lib/replay/run_search.h"

#include <set>

#include "lib/base/find_row.h"
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

TEST_CASE("every way that is offered fits, and there are up to three", "[replay]") {
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

TEST_CASE("the bytes of a way are the peak of the run with all its micro-batches", "[replay]") {
  const RunConfig config = small_run({"train.micro_batch=8", "train.grad_accum=3"});
  for (const auto& way : ways(config, 2, peak_on(config, 2) * 8 / 10))
    CHECK(peak_on(way.plan, 2) == way.cost.bytes);
}

TEST_CASE("nothing fits into nothing", "[replay]") { CHECK(ways(small_run({}), 2, 1000).empty()); }

TEST_CASE("to keep less is offered where something is kept", "[replay]") {
  const RunConfig none = small_run({"train.keep=none"});
  const auto [keep, offered] =
      GENERATE(table<std::string, bool>({{"none", false}, {"norms", true}, {"all", true}}));
  RunConfig keeping = none;
  keeping.train.keep = keep;
  const auto found = ways(keeping, 1, peak_on(none, 1));
  const bool is_offered = std::ranges::any_of(found, [](const auto& way) {
    return way.changes.size() == 1 && way.changes[0].name == "train.keep" &&
           way.changes[0].value == "\"none\"";
  });
  CHECK(is_offered == offered);
}

TEST_CASE("offload is offered where the rules let the run offload, and only there", "[replay]") {
  const auto [optimizer, allowed] = GENERATE(std::pair("adamw", true), std::pair("muon", false));
  // Offload is the only saving that is left to this run.
  const RunConfig config = small_run(
      {fmt::format("optim.name={}", optimizer), "train.recompute=full", "train.micro_batch=1"});
  RunConfig offloaded = config;
  offloaded.offload.optimizer = offloaded.offload.parameters = "memory";
  const uint64_t limit = peak_on(offloaded, 1);
  REQUIRE(limit < peak_on(config, 1));
  CAPTURE(optimizer);
  CHECK(ways(config, 1, limit).empty() != allowed);
}

using Key = std::tuple<std::string, int, int, Recompute, OffloadTo, OffloadTo>;

Key key_of(const RunConfig& run) {
  return {run.parallel.strategy, run.parallel.shard_size, run.train.micro_batch,
          run.train.recompute,   run.offload.optimizer,   run.offload.parameters};
}

TEST_CASE("every variant of a run can be planned, and has its rows", "[replay]") {
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

TEST_CASE("a run that fixes its sums keeps its micro-batches", "[replay]") {
  const RunConfig config = small_run({"train.deterministic=any-world-size", "train.grad_accum=2"});
  for (const RunConfig& variant : run_variants(config, 2))
    CHECK(variant.train.micro_batch == config.train.micro_batch);
}

TEST_CASE("the largest that fits is found, and what one more would take", "[replay]") {
  const int answer = GENERATE(1, 2, 3, 4, 7, 8, 99, 100);
  int most_tried = 0;
  const auto bytes_of = [&](int value) {
    most_tried = std::max(most_tried, value);
    return uint64_t(10 * value);
  };
  const Largest largest = find_largest(bytes_of, uint64_t(10 * answer + 9), 1, 100);
  CAPTURE(answer);
  CHECK(largest.value == answer);
  CHECK(largest.bytes == uint64_t(10 * answer));
  CHECK(largest.next_bytes == (answer == 100 ? 0 : uint64_t(10 * (answer + 1))));
  CHECK(most_tried <= std::min(100, 2 * answer));
}

TEST_CASE("where not even one fits, its bytes are told", "[replay]") {
  const Largest largest = find_largest([](int value) { return uint64_t(50 * value); }, 40, 1, 100);
  CHECK(largest.value == 0);
  CHECK(largest.bytes == 50);
}

TEST_CASE("layers are looked for from those on that patterns name", "[replay]") {
  const RunConfig config =
      small_run({"model.layers=8", "train.recompute=full", R"(train.recompute_units=["h.[1-3]"])",
                 "parallel.wrap=match", R"(parallel.wrap_units=["h.0", "h.4"])"});
  const Network network = network_of("shm", 1);
  const Quantity<RunConfig>& layers = find_row(run_quantities(), "layers", "--solve");
  CHECK(layers.least(config) == 5);
  std::vector<int> tried;
  const auto bytes_of = [&](int value) {
    tried.push_back(value);
    RunConfig run = config;
    layers.set(run, value);
    return total_of(memory_of_run(plan_run(run, 1), network, 0, {}).peak);
  };
  CHECK(find_largest(bytes_of, 1, layers.least(config), layers.most).value == 0);
  CHECK(tried == std::vector<int>{5});
  CHECK(find_largest(bytes_of, 2 * bytes_of(5), 5, layers.most).value > 5);
}

TEST_CASE("a run has more of each quantity until its memory is full", "[replay]") {
  const RunConfig config = small_run({"parallel.strategy=zero3"});
  const Network network = network_of("shm", 2);
  for (const Quantity<RunConfig>& quantity : run_quantities()) {
    CAPTURE(quantity.name);
    const auto bytes_of = [&](int value) {
      RunConfig larger = config;
      quantity.set(larger, value);
      return total_of(memory_of_run(plan_run(larger, 2), network, 0, {}).peak);
    };
    const uint64_t limit = 2 * bytes_of(3);
    const Largest largest = find_largest(bytes_of, limit, quantity.least(config), quantity.most);
    CHECK(largest.value >= 3);
    CHECK(bytes_of(largest.value) <= limit);
    CHECK(bytes_of(largest.value + 1) > limit);
  }
}

}  // namespace
}  // namespace gxp
