#include "lib/collective/tune/selection.h"

#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/collective/error_of.h"

using namespace gxp;

namespace {

// A round costs 1 us and 1 ns a byte; folding and copying nothing that counts.
Profile simple_profile(int cores = 64) {
  const CostCurve round{{{1, 1e-6}, {1000, 1e-6}, {1000000, 1e-3}}};
  const CostCurve nothing{{{1, 1e-12}, {1e12, 1e-12}}};
  LinkClass shm{.transport = "shm", .ranks = 2, .hosts = 1};
  shm.curves = {{"start", nothing}, {"swap", {{{1, 1e-6}}}}, {"exchange", round}, {"hop", round},
                {"fold", nothing},  {"fold-later", nothing}, {"copy", nothing}};
  LinkClass tcp = shm;
  tcp.transport = "tcp";
  LinkClass between{.transport = "tcp", .ranks = 2, .hosts = 2};
  between.curves["exchange"] = {{{1, 1e-4}, {1000, 1e-4}, {1000000, 1e-1}}};
  return {.machine = {.cpu = "", .cores = cores, .linux_release = ""},
          .links = {shm, tcp, between}};
}

// Two ranks on one host over shm, or on one each over tcp, and what each all-reduce took them.
Profile measured_profile() {
  const std::map<std::string_view, double> fast = {
      {"ring", 8e-6}, {"recursive-doubling", 6e-6}, {"one-shot", 5e-6}, {"hierarchical", 3e-6}};
  Profile profile = simple_profile();
  for (LinkClass& link : profile.links) {
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective != Collective::kAllReduce) continue;
      const auto known = fast.find(algorithm.name);
      const double seconds = known == fast.end() ? 1e-3 : known->second;
      link.curves[message_curve_name(algorithm)] = {{{8, seconds}, {4096, seconds}}};
    }
  }
  return profile;
}

AlgorithmPlan select(Collective collective, size_t bytes, const SelectionSettings& settings,
                     const CostModel& model, MemoryOrigin origin = MemoryOrigin::kCommunicator) {
  return select_algorithm({.collective = collective, .dtype = DType::kF32, .count = bytes / 4},
                          settings, model, origin);
}

AlgorithmPlan plan_for(Collective collective, size_t bytes, int world_size,
                       const SelectionSettings& settings = {}) {
  const Profile profile = simple_profile();
  return select(collective, bytes, settings,
                CostModel({.world_size = world_size, .transport = "shm"}, profile));
}

double seconds(std::string_view name, Collective collective, double bytes,
               const GroupTopology& topology) {
  const Profile profile = simple_profile();
  const CostModel model(topology, profile);
  return model.seconds(*find_algorithm(name, collective), bytes, bytes,
                       MemoryOrigin::kCommunicator);
}

}  // namespace

TEST_CASE("rounds of the recording cost what the formulas say", "[collective]") {
  // 4 MB over 4 ranks, 1 ns a byte.
  const GroupTopology four{.world_size = 4, .transport = "shm"};
  struct Row {
    std::string_view name;
    Collective collective;
    double seconds;
  };
  for (const Row& row :
       {Row{"ring", Collective::kAllReduce, 6e-3}, Row{"ring", Collective::kAllGather, 3e-3},
        Row{"halving-doubling", Collective::kAllReduce, 6e-3},
        Row{"halving-doubling", Collective::kReduceScatter, 3e-3},
        Row{"recursive-doubling", Collective::kAllReduce, 8e-3},
        // All of it at once: one wait.
        Row{"direct", Collective::kAllGather, 3e-3 - 2e-6}}) {
    CAPTURE(row.name, to_string(row.collective));
    CHECK(seconds(row.name, row.collective, 4e6, four) == Approx(row.seconds));
  }
  // 8 bytes: rounds of 1 us.
  CHECK(seconds("ring", Collective::kAllReduce, 8, four) == Approx(6e-6));
  CHECK(seconds("halving-doubling", Collective::kAllReduce, 8, four) == Approx(4e-6));
}

TEST_CASE("between hosts a round takes what crosses the slowest link", "[collective]") {
  const std::vector<int> hosts = {0, 0, 1, 1};
  const GroupTopology topology{.world_size = 4, .hosts = hosts, .transport = "tcp"};
  // 6 rounds of a quarter each way against 2 rounds of half each way.
  CHECK(seconds("ring", Collective::kAllReduce, 4e6, topology) == Approx(6 * 0.1));
  CHECK(seconds("hierarchical", Collective::kAllReduce, 4e6, topology) <
        0.75 * seconds("ring", Collective::kAllReduce, 4e6, topology));
}

TEST_CASE("every collective has a plan at every size and number of ranks", "[collective]") {
  for (const Collective collective : collectives()) {
    for (const int world_size : {1, 2, 3, 5, 8, 100}) {
      for (const size_t bytes : {size_t{0}, size_t{8}, size_t{64} << 20}) {
        const AlgorithmPlan plan = plan_for(collective, bytes, world_size);
        CAPTURE(to_string(collective), world_size, bytes);
        REQUIRE(plan.algorithm != nullptr);
        CHECK(plan.algorithm->collective == collective);
        CHECK(plan.algorithm->layout_invariant);
        CHECK(plan.segment_bytes > 0);
        CHECK(contains(plan.reason, "predicted"));
      }
    }
  }
}

TEST_CASE("the same question has the same answer", "[collective]") {
  const AlgorithmPlan first = plan_for(Collective::kAllReduce, 4096, 8);
  const AlgorithmPlan second = plan_for(Collective::kAllReduce, 4096, 8);
  CHECK(first.algorithm == second.algorithm);
  CHECK(first.reason == second.reason);
  CHECK(first.predicted_seconds == second.predicted_seconds);
}

TEST_CASE("the predicted time does not fall with size", "[collective]") {
  for (const Profile& profile : {simple_profile(), builtin_profile()}) {
    for (const int world_size : {2, 3, 4, 8}) {
      const CostModel model({.world_size = world_size, .transport = "shm"}, profile);
      for (const Algorithm& algorithm : algorithms()) {
        for (const double segment : {1e9, 65536.0}) {
          double before = 0;
          for (double bytes = 1; bytes < 1e9; bytes *= 1.7) {
            const double now = model.seconds(algorithm, bytes, segment, MemoryOrigin::kOrdinary);
            CAPTURE(algorithm.name, to_string(algorithm.collective), world_size, bytes, segment);
            CHECK(now >= before * (1 - 1e-12));
            before = now;
          }
        }
      }
    }
  }
}

TEST_CASE("a wanted algorithm is taken where the collective has it", "[collective]") {
  const SelectionSettings ring{.algorithm = "ring"};
  const AlgorithmPlan all_reduce = plan_for(Collective::kAllReduce, 8, 4, ring);
  CHECK(all_reduce.algorithm->name == "ring");  // although its order depends on the layout
  CHECK(contains(all_reduce.reason, "asked for"));
  CHECK(plan_for(Collective::kBarrier, 0, 4, ring).algorithm->name != "ring");
}

TEST_CASE("an order that depends on the layout is taken only where that is allowed",
          "[collective]") {
  const auto plan = [&](const std::vector<int>& hosts, bool invariant) {
    const GroupTopology topology{
        .world_size = int(hosts.size()), .hosts = hosts, .transport = "tcp"};
    const Profile profile = simple_profile();
    return select(Collective::kAllReduce, 64 << 20, {.layout_invariant = invariant},
                  CostModel(topology, profile));
  };
  const std::vector<int> threes = {0, 0, 0, 1, 1, 1};
  CHECK(plan(threes, true).algorithm->layout_invariant);
  CHECK(plan(threes, false).algorithm->name == "hierarchical");
  // Neighbours first: on hosts of 2^k ranks halving-doubling sends as little between them.
  CHECK(plan({0, 0, 0, 0, 1, 1, 1, 1}, false).algorithm->name == "halving-doubling");
}

TEST_CASE("only a ring has channels", "[collective]") {
  CHECK(plan_for(Collective::kAllReduce, 64, 4, {.algorithm = "ring"}).channels == 1);
  CHECK(plan_for(Collective::kAllReduce, 64, 4, {.algorithm = "ring", .channels = 3}).channels ==
        3);
  CHECK(plan_for(Collective::kAllReduce, 64, 4, {.channels = 3}).channels == 1);
}

TEST_CASE("a pipelined tree gets segments, if it is long enough", "[collective]") {
  const SelectionSettings tree{.algorithm = "double-tree"};
  CHECK(plan_for(Collective::kBroadcast, 64 << 20, 8, tree).segment_bytes < (64 << 20));
  CHECK(plan_for(Collective::kBroadcast, 64, 8, tree).segment_bytes == 64);
  SelectionSettings fixed = tree;
  fixed.segment_bytes = 1000;
  CHECK(plan_for(Collective::kBroadcast, 64 << 20, 8, fixed).segment_bytes == 1000);
}

TEST_CASE("where memory is shared, direct takes what was measured", "[collective]") {
  Profile profile = simple_profile();
  profile.links[0].curves["direct-all-reduce"] = {{{8, 3e-9}}};
  profile.links[0].curves["staged-all-reduce"] = {{{8, 5e-9}}};
  const GroupTopology shared{.world_size = 2, .transport = "shm", .shared_arena = true};
  const CostModel model(shared, profile);
  const AlgorithmPlan direct = select(Collective::kAllReduce, 8, {}, model);
  CHECK(direct.algorithm->name == "direct");
  CHECK(direct.predicted_seconds == 3e-9);
  CHECK(select(Collective::kAllReduce, 8, {}, model, MemoryOrigin::kOrdinary).predicted_seconds ==
        5e-9);
}

TEST_CASE("measured times decide where all that may run have one", "[collective]") {
  const Profile profile = measured_profile();
  const GroupTopology two{.world_size = 2, .transport = "shm"};
  const CostModel model(two, profile);
  const auto plan = [&](const SelectionSettings& settings) {
    return select(Collective::kAllReduce, 4096, settings, model);
  };
  CHECK(plan({}).algorithm->name == "one-shot");  // which the model finds slower
  CHECK(plan({}).predicted_seconds == Approx(5e-6));
  CHECK(plan({}).reason == "5 us measured; next is recursive-doubling, 6 us");
  CHECK(plan({.algorithm = "ring"}).reason == "8 us measured; asked for");
  CHECK(plan({.layout_invariant = false}).algorithm->name == "hierarchical");
  // These change what was measured.
  CHECK(contains(plan({.segment_bytes = 64}).reason, "predicted"));
  CHECK(contains(plan({.channels = 2}).reason, "predicted"));
}

TEST_CASE("a measured time holds for the ranks, hosts and memory it was taken with",
          "[collective]") {
  Profile profile = measured_profile();
  const std::vector<int> apart = {0, 1};
  const std::vector<int> together = {0, 0, 1, 1};
  const auto all_measured = [&](const GroupTopology& topology) {
    const AlgorithmPlan plan = select(Collective::kAllReduce, 64, {}, CostModel(topology, profile));
    return contains(plan.reason, "measured");
  };
  CHECK(all_measured({.world_size = 2, .transport = "shm"}));
  CHECK(all_measured({.world_size = 2, .hosts = apart, .transport = "tcp"}));
  CHECK_FALSE(all_measured({.world_size = 3, .transport = "shm"}));
  CHECK_FALSE(all_measured({.world_size = 2, .transport = "inproc"}));  // shm stands for it
  CHECK_FALSE(all_measured({.world_size = 4, .hosts = together, .transport = "tcp"}));
  // Where ranks shared memory, "direct" was not by messages.
  profile.links[0].curves["staged-all-reduce"] = {{{8, 5e-6}}};
  CHECK_FALSE(all_measured({.world_size = 2, .transport = "shm"}));
  CHECK(all_measured({.world_size = 2, .transport = "shm", .shared_arena = true}));
  profile.links[0].curves.erase("one-shot-all-reduce");
  CHECK_FALSE(all_measured({.world_size = 2, .transport = "shm", .shared_arena = true}));
}

TEST_CASE("more ranks than were measured share the cores", "[collective]") {
  const Profile two_cores = simple_profile(2);
  const Algorithm& ring = *find_algorithm("ring", Collective::kAllGather);
  const CostModel eight({.world_size = 8, .transport = "shm"}, two_cores);
  CHECK(eight.seconds(ring, 8, 8, MemoryOrigin::kCommunicator) == Approx(7 * 4 * 1e-6));
}

TEST_CASE("an algorithm that does not exist is refused with those that do", "[collective]") {
  CHECK_NOTHROW(check_algorithm_name("auto"));
  CHECK_NOTHROW(check_algorithm_name("ring"));
  const std::string message = error_of([] { check_algorithm_name("rign"); });
  for (const std::string_view words :
       {"comm.algorithm 'rign' is unknown", "halving-doubling", "did you mean 'ring'"}) {
    CHECK(contains(message, words));
  }
}
