#include "lib/tools/colltest/nccl_table.h"

#include <regex>
#include <sstream>
#include <vector>

#include "tests/catch.h"
#include "tests/tools/colltest/sample_results.h"

namespace gxp {
namespace {

NcclTable plain() { return {.operation = "all_reduce", .summary = "2 ranks", .world_size = 2}; }

// How parsers of nccl-tests' output read it: words of the lines that are no remarks.
std::vector<std::string> words(const std::string& row) {
  std::istringstream stream(row);
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

TEST_CASE("a row has nccl-tests' thirteen columns", "[bench]") {
  const std::string row = nccl_row(plain(), sample_result("all_reduce", 1 << 20, 1e-3), "");
  CHECK(row ==
        "     4194304       1048576     float     sum      -1  1000.00    4.19    4.19       0  "
        "2000.00    2.10    2.10       0\n");
  static const std::regex kRow(R"(^\s*\d+\s+\d+\s+\w+\s+\w+\s+-?\d+(\s+[\d.e+]+){8}\n$)");
  CHECK(std::regex_match(row, kRow));
}

TEST_CASE("columns keep their width whatever the value", "[bench]") {
  const double seconds = GENERATE(1e-9, 4e-7, 0.0123456, 12.3, 123.4, 12345.6);
  const std::string row = nccl_row(plain(), sample_result("all_reduce", 1, seconds), "");
  CAPTURE(row);
  CHECK(row.size() == nccl_row(plain(), sample_result("all_reduce", 1, 1e-3), "").size());
  CHECK(words(row).size() == 13);
}

TEST_CASE("what an operation has not, or what was not checked, is N/A", "[bench]") {
  CaseResult result = sample_result("sendrecv", 2, 1e-3);
  result.out_of_place.wrong.reset();
  const auto row = words(nccl_row(plain(), result, ""));
  REQUIRE(row.size() == 13);
  CHECK(row[8] == "N/A");
  CHECK(std::vector(row.begin() + 9, row.end()) == std::vector<std::string>(4, "N/A"));
}

TEST_CASE("-a takes the time of the ranks that it names", "[bench]") {
  NcclTable averaged = plain();
  const auto [average, time] = GENERATE(table<Average, std::string>({{Average::kRank0, "500.00"},
                                                                     {Average::kMean, "750.00"},
                                                                     {Average::kMin, "500.00"},
                                                                     {Average::kMax, "1000.00"}}));
  averaged.options.average = average;
  CHECK(words(nccl_row(averaged, sample_result("all_reduce", 4, 1e-3), ""))[5] == time);
}

TEST_CASE("-I and -S add their columns", "[bench]") {
  NcclTable wide = plain();
  wide.options.per_iteration = wide.options.timestamps = true;
  const CaseResult result = sample_result("all_reduce", 4, 1e-3);
  const auto row = words(nccl_row(wide, result, "2026-01-31 12:00:00"));
  CHECK(row.size() == 23);
  CHECK(row[9] == "1000.00");
  CHECK(row.back() == "12:00:00");
  const std::string head = nccl_head(wide, sample_ranks());
  CHECK_THAT(head, Catch::Contains("i_min    i_max    i_p99    i_cv%"));
  CHECK_THAT(head, Catch::Contains("timestamp\n"));
}

TEST_CASE("all lines but rows are remarks", "[bench]") {
  const std::vector<CaseResult> results = {sample_result("all_reduce", 4, 1e-3)};
  std::istringstream text(nccl_head(plain(), sample_ranks()) + nccl_remarks(plain(), results) +
                          nccl_foot(plain(), results));
  for (std::string line; std::getline(text, line);) CHECK(line.starts_with('#'));
}

TEST_CASE("the head has nccl-tests' lines", "[bench]") {
  NcclTable all = plain();
  all.options.sweep = {.min_bytes = 8, .max_bytes = 64, .factor = 2};
  all.options.warmup = 0;
  const std::string head = nccl_head(all, sample_ranks());
  for (const char* line :
       {"# Collective test starting: all_reduce\n",
        "minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 0 iters: auto ",
        "#  Rank  0 Group  0 Pid   4711 on      north device  0 [0000:00:00] A CPU\n",
        "#  Rank  1 Group  0 Pid   4711 on      north device  1 [0000:00:00] A CPU\n",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
        "time   algbw   busbw  #wrong \n",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             "
        "(us)  (GB/s)  (GB/s)         \n"})
    CHECK_THAT(head, Catch::Contains(line));
}

TEST_CASE("the foot judges values and bandwidth", "[bench]") {
  std::vector<CaseResult> results = {sample_result("all_reduce", 1 << 20, 1e-3)};
  CHECK_THAT(nccl_foot(plain(), results),
             Catch::Contains("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 3.14573 \n"));
  NcclTable fast = plain();
  fast.options.min_busbw = 3.4;
  CHECK_THAT(nccl_foot(fast, results), Catch::Contains(": 3.14573 OK\n"));
  fast.options.min_busbw = 3.6;
  CHECK_THAT(nccl_foot(fast, results), Catch::Contains(": 3.14573 FAILED\n"));
  results[0].out_of_place.wrong = 2;
  results[0].in_place->out_of_bounds = 1;
  CHECK_THAT(nccl_foot(plain(), results), Catch::Contains(" : 3 FAILED\n"));
}

TEST_CASE("one rank is told why its bandwidth is 0", "[bench]") {
  NcclTable alone = plain();
  alone.world_size = 1;
  CHECK_THAT(nccl_head(alone, {}), Catch::Contains("# One rank:"));
}

}  // namespace
}  // namespace gxp
