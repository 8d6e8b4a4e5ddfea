#include "lib/tools/colltest/calibrate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/collective/tune/shared_selection.h"
#include "tests/catch.h"
#include "tests/collective/on_hosts.h"
#include "tests/collective/run_ranks.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/transport/faulty.h"

using namespace gxp;

namespace {

constexpr size_t kMost = 64 << 10;

std::string calibrated(Communicator& comm) { return to_toml(calibrate(comm, kMost)); }

}  // namespace

TEST_CASE("calibration measures what a profile must have, the same on every rank", "[collective]") {
  const std::vector<std::string> texts = run_ranks(3, calibrated);
  CHECK(texts[1] == texts[0]);
  CHECK(texts[2] == texts[0]);
  const Profile profile = parse_profile(texts[0], "measured");  // complete, and ascending
  REQUIRE(profile.links.size() == 1);
  CHECK(profile.links[0].transport == "inproc");
  CHECK(profile.links[0].ranks == 3);
  CHECK(profile.machine.cores == this_machine().cores);
  for (const Algorithm& algorithm : algorithms()) {
    const CostCurve* curve = profile.links[0].curve(message_curve_name(algorithm));
    CAPTURE(algorithm.name, to_string(algorithm.collective));
    REQUIRE(curve != nullptr);
    CHECK(curve->points.size() == (algorithm.collective == Collective::kBarrier ? 1 : 8));
  }
}

TEST_CASE("with several hosts, the links inside one and between them are told apart",
          "[collective]") {
  InprocWorld world(4);
  const auto texts = run_ranks_over(
      [&](int rank) { return std::make_unique<OnHosts>(world.make_transport(rank)); }, 4,
      calibrated);
  const Profile profile = parse_profile(texts[3], "measured");
  REQUIRE(profile.links.size() == 2);
  CHECK(find_link(profile, "inproc", 2, 1).ranks == 2);
  CHECK(find_link(profile, "inproc", 1, 2).hosts == 2);
  for (const LinkClass& link : profile.links) CHECK(link.curve("ring-all-reduce") != nullptr);
}

TEST_CASE("where ranks share memory, a calibration times every method, and they decide",
          "[.long]") {
  const Profile profile = parse_profile(run_ranks_of("shm", 2, calibrated)[1], "measured");
  const LinkClass* const methods = find_methods(profile, "shm", 2);
  REQUIRE(methods != nullptr);
  CHECK(messages_compete(profile, "shm", 2));
  const GroupTopology two{.world_size = 2, .transport = "shm", .shared_arena = true};
  const Call call{.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 16384};
  double least = 1;
  for (const SharedMethod method :
       {SharedMethod::kCopied, SharedMethod::kCma, SharedMethod::kTiles}) {
    const auto seconds = seconds_of(method, methods, call.collective, kMost);
    CAPTURE(to_string(method));
    REQUIRE(seconds);
    least = std::min(least, *seconds);
  }
  const AlgorithmPlan plan =
      select_with_sharing(call, {.algorithm = "direct"}, CostModel(two, profile),
                          {.ranks = 2, .cma = true}, MemoryOrigin::kOrdinary);
  CHECK(plan.predicted_seconds == Approx(least));
  CHECK(contains(plan.reason, "measured"));
}

TEST_CASE("one rank has nothing to measure", "[collective]") {
  const auto texts = run_ranks(1, calibrated);
  CHECK(parse_profile(texts[0], "measured").links.empty());
}

TEST_CASE("the time of a body is the slowest rank's", "[collective]") {
  const auto times = run_ranks(2, [](Communicator& comm) {
    const TimedBody body = [&] {
      const auto start = Deadline::Clock::now();
      while (comm.rank() == 1 && Deadline::Clock::now() - start < std::chrono::milliseconds(2)) {
      }
    };
    return median_seconds(comm, {&body, 1}, 0.001)[0];
  });
  CHECK(times[0] == times[1]);
  CHECK(times[0] >= 0.002);
}
