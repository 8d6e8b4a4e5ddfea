#include "lib/tools/colltest/result_report.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/tools/colltest/sample_results.h"

namespace gxp {
namespace {

using nlohmann::json;

const RunFacts kReportedFacts{
    .world_size = 2, .transport = "shm", .engine = "native", .memory = "ordinary"};

json report_of(const std::vector<CaseResult>& results, const RunFacts& facts = kReportedFacts) {
  return json::parse(to_json(to_report(facts, sample_ranks(), results)));
}

TEST_CASE("the JSON has the keys of the contract", "[bench]") {
  const json report = report_of({sample_result("all_reduce", 1 << 20, 1e-3)});
  CHECK(report["schema"] == "gxp.allreduce-test/1");
  const json& row = report["results"][0];
  CHECK(row["size"] == 4194304);
  CHECK(row["count"] == 1048576);
  CHECK(row["type"] == "f32");
  CHECK(row["op"] == "all_reduce");
  CHECK(row["redop"] == "sum");
  CHECK(row["root"].is_null());
  CHECK(row["algorithm"] == "ring");
  CHECK(row["transport"] == "shm");
  CHECK(row["predicted_us"] == Approx(2000));
  CHECK(row["expected_busbw"] == Approx(2.097152));
  const json& half = row["in_place"];
  CHECK(half["time_us"] == Approx(2000));
  CHECK(half["algbw"] == Approx(2.097152));
  CHECK(half["busbw"] == Approx(2.097152));
  CHECK(half["wrong"] == 0);
  for (const char* key :
       {"p50_us", "p99_us", "min_us", "max_us", "mean_us", "median_95_low_us", "median_95_high_us"})
    CHECK(half[key] == Approx(2000));
  CHECK(report["average_bus_bandwidth"] == Approx(3.145728));
}

TEST_CASE("each rank has its median and its lateness", "[bench]") {
  const json report = report_of({sample_result("broadcast", 4, 1e-3)});
  REQUIRE(report["ranks"].size() == 2);
  const json& second = report["ranks"][1];
  CHECK(second["op"] == "broadcast");
  CHECK(second["root"] == 0);
  CHECK(second["rank"] == 1);
  CHECK(second["out_of_place"]["median_us"] == Approx(1000));
  CHECK(second["out_of_place"]["late_us"] == Approx(1));
  CHECK(report["devices"][1]["hostname"] == "north");
}

TEST_CASE("what is not known is null", "[bench]") {
  CaseResult result = sample_result("sendrecv", 4, 1e-3);
  result.predicted_s.reset();
  result.out_of_place.wrong.reset();
  result.out_of_place.ranks[0].late_s.reset();
  const json report = report_of({result});
  const json& row = report["results"][0];
  CHECK(row["in_place"]["time_us"].is_null());
  CHECK(row["out_of_place"]["wrong"].is_null());
  CHECK(row["predicted_us"].is_null());
  CHECK(report["ranks"][0]["out_of_place"]["late_us"].is_null());
}

TEST_CASE("the times of all iterations are there if they were kept", "[bench]") {
  RunFacts facts = kReportedFacts;
  const std::vector<CaseResult> results = {sample_result("all_reduce", 4, 1e-3)};
  CHECK_FALSE(report_of(results)["results"][0]["out_of_place"].contains("times_ns"));
  facts.keep_times = true;
  const json times = report_of(results, facts)["results"][0]["out_of_place"]["times_ns"];
  CHECK(times == json(std::vector<int64_t>(20, 1'000'000)));
}

}  // namespace
}  // namespace gxp
