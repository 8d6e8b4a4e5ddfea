#include "lib/collective/engine/shared_memory/startup_benchmark.h"

#include "lib/collective/engine/native/native_engine.h"
#include "lib/collective/tune/shared_methods.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"

using namespace gxp;

namespace {

// What each rank would run for an all-reduce of 64 KiB after the ranks have tuned, and what it
// gives.
std::vector<std::string> plans_after_tuning(const std::string& transport, int world_size) {
  World world(transport, world_size);
  std::vector<std::string> plans(static_cast<size_t>(world_size));
  const auto errors = run_all(world_size, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto device = make_cpu_device();
    auto engine = std::make_unique<NativeEngine>(world.join(*store), *device, SelectionSettings{},
                                                 builtin_profile());
    engine->tune(soon());
    Communicator comm(std::move(engine), std::chrono::seconds(20));
    std::vector<float> data(16384, 1);
    comm.all_reduce(memory_of(data), DType::kF32, ReduceOp::kSum);
    const Call call{.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 16384};
    plans[size_t(rank)] = fmt::format("{} {}", data.back(), comm.plan(call).reason);
    comm.barrier();
    store->close();
  });
  for (const std::string& error : errors) CHECK(error == "");
  return plans;
}

}  // namespace

TEST_CASE("ranks that tune choose the same by what they have measured", "[collective]") {
  for (const int world_size : {2, 3}) {
    const auto plans = plans_after_tuning("shm", world_size);
    for (const std::string& plan : plans) CHECK(plan == plans.front());
    CHECK(contains(plans.front(), fmt::format("{} ", world_size)));
    CHECK(contains(plans.front(), "; by "));
  }
  CHECK_FALSE(contains(plans_after_tuning("shm mapped", 2).front(), "cma"));
}

TEST_CASE("a plan without ranks is by what threads measure here", "[collective]") {
  const StartupBenchmark done = benchmark_here(2, false, 2);
  CHECK_FALSE(done.cma);
  CHECK(done.tile_bytes > 0);
  for (const Collective collective : collectives()) {
    if (collective == Collective::kBarrier) continue;
    const CostCurve* const tiles =
        done.methods.curve(method_curve_name(SharedMethod::kTiles, collective));
    CAPTURE(to_string(collective));
    REQUIRE(tiles != nullptr);
    CHECK(tiles->points.front().seconds > 0);
    CHECK(done.methods.curve(method_curve_name(SharedMethod::kCma, collective)) == nullptr);
  }
  CHECK(contains(summary(done), "16 KiB: "));
}
