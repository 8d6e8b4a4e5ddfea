#include "lib/replay/solve.h"

#include "lib/estimate/find_largest.h"
#include "lib/replay/memory.h"
#include "tests/catch.h"
#include "tests/replay/runs.h"

namespace gxp {
namespace {

TEST_CASE("the largest that fits is found, and what one more would take", "[forecast]") {
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

TEST_CASE("where not even one fits, its bytes are told", "[forecast]") {
  const Largest largest = find_largest([](int value) { return uint64_t(50 * value); }, 40, 1, 100);
  CHECK(largest.value == 0);
  CHECK(largest.bytes == 50);
}

TEST_CASE("layers are looked for from those on that patterns name", "[forecast]") {
  const RunConfig config =
      small_run({"model.layers=8", "train.recompute=full", R"(train.recompute_units=["h.[1-3]"])",
                 "parallel.wrap=match", R"(parallel.wrap_units=["h.0", "h.4"])"});
  const Network network = network_of("shm", 1);
  const Quantity<RunConfig>& layers = find_run_quantity("layers");
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

TEST_CASE("a run has more of each quantity until its memory is full", "[forecast]") {
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
