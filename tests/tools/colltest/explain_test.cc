#include "lib/tools/colltest/explain/explain.h"

#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

Explanation explain_all_reduce(std::vector<size_t> counts, const std::string& algorithm) {
  std::vector<BenchCase> cases;
  for (const size_t count : counts)
    cases.push_back({find_operation("all_reduce"), DType::kF32, ReduceOp::kSum, 0, count});
  const GroupTopology topology{
      .world_size = 4, .hosts = {}, .transport = "shm", .shared_arena = true};
  return explain(cases, topology, {.algorithm = algorithm}, builtin_profile(),
                 MemoryOrigin::kOrdinary);
}

TEST_CASE("each size has a plan with its reason", "[bench]") {
  const Explanation explanation = explain_all_reduce({2, 1 << 20}, "auto");
  const Table& plans = explanation.plans.tables.at(0);
  REQUIRE(plans.rows.size() == 2);
  CHECK(std::get<int64_t>(plans.rows[1][1]) == 4 << 20);
  CHECK(std::get<double>(plans.rows[0][6]) > 0);
  CHECK_FALSE(std::get<std::string>(plans.rows[0][8]).empty());
}

TEST_CASE("the steps are those of the last size's algorithm", "[bench]") {
  const Explanation explanation = explain_all_reduce({2, 1 << 20}, "ring");
  CHECK_THAT(explanation.title, Catch::Contains("all_reduce of 4 MiB f32 by ring on 4 ranks"));
  CHECK_FALSE(explanation.steps.empty());
  CHECK_THAT(explanation.svg, Catch::Contains("<svg"));
}

TEST_CASE("send/recv has nothing to choose", "[bench]") {
  const BenchCase bench{find_operation("sendrecv"), DType::kF32, ReduceOp::kSum, 0, 4};
  const GroupTopology topology{
      .world_size = 2, .hosts = {}, .transport = "tcp", .shared_arena = false};
  const Explanation explanation =
      explain({&bench, 1}, topology, {}, builtin_profile(), MemoryOrigin::kOrdinary);
  CHECK(explanation.plans.tables.at(0).rows.empty());
  CHECK(explanation.steps.empty());
}

}  // namespace
}  // namespace gxp
