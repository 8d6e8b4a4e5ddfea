#include "lib/collective/tune/shared_methods.h"

#include "lib/collective/tune/shared_selection.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"

using namespace gxp;

namespace {

using enum Collective;
using enum SharedMethod;

// All-reduces of 2 ranks: copies are best up to 2 KiB, tiles up to 64 KiB, then CMA.
LinkClass measured_methods() {
  LinkClass link{.transport = "shm", .ranks = 2, .hosts = 1};
  link.curves["copied-all-reduce"] = {{{256, 1e-6}, {65536, 2e-4}}};
  link.curves["tiles-all-reduce"] = {{{256, 5e-6}, {65536, 9e-6}, {1048576, 9e-5}}};
  link.curves["cma-all-reduce"] = {{{256, 8e-6}, {65536, 10e-6}, {1048576, 5e-5}}};
  link.curves["placed-all-reduce"] = {{{256, 2e-6}, {65536, 3e-6}}};
  return link;
}

SharedMethods ways_of(size_t bytes, const MethodLimits& limits) {
  const LinkClass measured = measured_methods();
  return fastest_methods(&measured, kAllReduce, bytes, limits);
}

// A calibration that found messages to be faster than anything else in ordinary memory.
Profile profile_for_messages() {
  LinkClass methods = measured_methods();
  methods.curves["staged-barrier"] = {{{8, 1e-7}}};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != kAllReduce || algorithm.name == "direct") continue;
    const double seconds = algorithm.name == "recursive-doubling" ? 2e-7 : 1;
    methods.curves[message_curve_name(algorithm)] = {{{8, seconds}}};
  }
  for (const std::string_view method : {"copied", "cma", "tiles"})
    methods.curves[std::string(method) + "-all-reduce"] = {{{8, 1e-3}}};
  return with_methods(builtin_profile(), methods, true);
}

}  // namespace

TEST_CASE("the method that was measured to be fastest is taken", "[collective]") {
  const MethodLimits limits{.ranks = 2, .cma = true};
  CHECK(ways_of(1024, limits).ordinary == kCopied);
  CHECK(ways_of(16384, limits).ordinary == kTiles);
  CHECK(ways_of(1 << 20, limits).ordinary == kCma);
  CHECK(ways_of(1 << 20, {.ranks = 2, .cma = false}).ordinary == kTiles);
  CHECK(ways_of(256, limits).communicator == kCopied);
  CHECK(ways_of(16384, limits).communicator == kPlaced);
}

TEST_CASE("a method that a user asks for is taken where it is possible", "[collective]") {
  MethodLimits limits{.ranks = 2, .cma = true, .wanted = kCma};
  CHECK(ways_of(1024, limits).ordinary == kCma);
  limits.wanted = kCopied;
  CHECK(ways_of(16384, limits).ordinary == kCopied);
  CHECK(ways_of(1 << 20, limits).ordinary == kCma);  // more than fits next to a line
}

TEST_CASE("a profile with methods predicts the least of them", "[collective]") {
  const Profile with_kernel = with_methods(builtin_profile(), measured_methods(), true);
  const LinkClass& link = *find_methods(with_kernel, "shm", 2);
  CHECK(link.curve("staged-all-reduce")->at(1 << 20) == Approx(5e-5));
  CHECK(link.curve("direct-all-reduce")->at(256) == Approx(1e-6));
  CHECK(link.curve("exchange") != nullptr);
  const Profile without = with_methods(with_kernel, link, false);
  CHECK(find_methods(without, "shm", 2)->curve("staged-all-reduce")->at(1 << 20) == Approx(9e-5));
  CHECK(find_methods(without, "shm", 2)->curve("cma-all-reduce") == nullptr);
  CHECK(to_toml(parse_profile(to_toml(with_kernel), "text")) == to_toml(with_kernel));
}

TEST_CASE("ranks that share memory send messages only where those were measured to be faster",
          "[collective]") {
  const GroupTopology two{.world_size = 2, .transport = "shm", .shared_arena = true};
  const MethodLimits limits{.ranks = 2, .cma = true};
  const Call call{.collective = kAllReduce, .dtype = DType::kF32, .count = 4096};
  const auto plan = [&](const Profile& profile) {
    return select_with_sharing(call, {}, CostModel(two, profile), limits, MemoryOrigin::kOrdinary);
  };
  LinkClass slow = measured_methods();
  for (auto& [name, curve] : slow.curves) curve = {{{8, 1}}};
  const AlgorithmPlan unmeasured = plan(with_methods(builtin_profile(), slow, true));
  CHECK(unmeasured.algorithm->name == "direct");
  CHECK(contains(unmeasured.reason, "by "));
  CHECK(plan(profile_for_messages()).algorithm->name == "recursive-doubling");
}

TEST_CASE("what is chosen is what runs, also where it is messages", "[collective]") {
  CommunicatorOptions options;
  options.profile = profile_for_messages();
  const auto ran = [&](const std::string& algorithm) {
    options.selection.algorithm = algorithm;
    const auto records = run_ranks_of(
        "shm", 2,
        [](Communicator& comm) {
          std::vector<float> data(4096);
          comm.all_reduce(memory_of(data), DType::kF32, ReduceOp::kSum);
          return comm.counters().messages_sent;
        },
        options);
    return records.front();
  };
  CHECK(ran("auto") > 0);
  CHECK(ran("tiles") == 0);
}
