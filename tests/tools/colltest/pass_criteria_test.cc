#include "lib/tools/colltest/pass_criteria.h"

#include <unistd.h>
#include <cstdio>

#include <filesystem>
#include <fstream>

#include "lib/base/error.h"
#include "lib/tools/colltest/totals.h"
#include "tests/catch.h"
#include "tests/tools/colltest/sample_results.h"

namespace gxp {
namespace {

const RunFacts kFacts{
    .world_size = 2, .transport = "shm", .engine = "native", .memory = "ordinary"};

// A file of one's own, gone at the end.
class TextFile {
 public:
  explicit TextFile(const std::string& text) {
    path_ = (std::filesystem::temp_directory_path() / "gxp-baseline-XXXXXX").string();
    const int fd = ::mkstemp(path_.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(path_) << text;
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { std::remove(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<CaseResult> results(double first_s, double second_s) {
  return {sample_result("all_reduce", 4, first_s), sample_result("broadcast", 4, second_s)};
}

Baseline baseline_of(const std::vector<CaseResult>& earlier) {
  return Baseline(TextFile(to_json(to_report(kFacts, {}, earlier))).path());
}

TEST_CASE("a row that takes longer by more than the tolerance is named", "[bench]") {
  const Baseline baseline = baseline_of(results(1e-3, 1e-3));
  CHECK(baseline.slower(results(1.14e-3, 0.5e-3), 0.15).empty());
  const auto lines = baseline.slower(results(1.3e-3, 1e-3), 0.15);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "all_reduce 16 B f32 sum, out of place: 1300.00 us, 30% more than 1000.00 us");
  CHECK_THAT(lines[1], Catch::Contains("in place: 2600.00 us"));
}

TEST_CASE("rows that the baseline lacks are passed over", "[bench]") {
  const Baseline baseline = baseline_of({sample_result("all_reduce", 4, 1e-3)});
  CHECK(baseline.slower({{sample_result("all_reduce", 8, 1)}}, 0.15).empty());
}

TEST_CASE("a baseline of another run is refused", "[bench]") {
  const Baseline baseline = baseline_of(results(1e-3, 1e-3));
  const BenchCase known = sample_result("broadcast", 4, 1).bench;
  const BenchCase unknown = sample_result("broadcast", 5, 1).bench;
  CHECK_NOTHROW(baseline.check_comparable(kFacts, {{unknown, known}}));
  CHECK_THROWS_WITH(baseline.check_comparable(kFacts, {{unknown}}),
                    Catch::Contains("none of the rows"));
  RunFacts other = kFacts;
  other.world_size = 3;
  CHECK_THROWS_WITH(baseline.check_comparable(other, {{known}}),
                    Catch::Contains("run with 2 ranks, this with 3"));
  other = kFacts;
  other.memory = "communicator";
  CHECK_THROWS_WITH(baseline.check_comparable(other, {{known}}),
                    Catch::Contains("ordinary memory, this with communicator memory"));
}

TEST_CASE("a file that is no baseline is refused with its name", "[bench]") {
  const std::string text = GENERATE("", "[1]", "{\"world_size\": 2}", "size count\n8 2\n",
                                    "{\"world_size\": 2, \"memory\": \"ordinary\", \"results\": "
                                    "[{\"op\": \"x\", \"size\": -1}]}");
  const TextFile file(text);
  CHECK_THROWS_WITH(Baseline(file.path()), Catch::Contains("read baseline " + file.path()));
  CHECK_THROWS_WITH(Baseline("/nowhere/x.json"), Catch::Contains("/nowhere/x.json"));
}

TEST_CASE("wrong values, damage and low bandwidth fail a run", "[bench]") {
  auto run = results(1e-3, 1e-3);
  const double busbw = totals_of(run, 2).busbw;
  CHECK(violations({}, kFacts, run).empty());
  CHECK(violations({.min_busbw = busbw}, kFacts, run).empty());
  CHECK(violations({.min_busbw = busbw / 0.91}, kFacts, run).empty());
  CHECK_FALSE(violations({.min_busbw = busbw / 0.89}, kFacts, run).empty());
  run[0].in_place->wrong = 3;
  run[1].out_of_place.out_of_bounds = 1;
  const auto lines = violations({}, kFacts, run);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "3 wrong elements");
  CHECK_THAT(lines[1], Catch::Contains("1 words outside"));
}

TEST_CASE("a tolerance is a percentage", "[bench]") {
  CHECK(parse_percentage("15%") == Approx(0.15));
  CHECK(parse_percentage("2.5") == Approx(0.025));
  CHECK(parse_percentage("0%") == 0);
  for (const char* text : {"", "%", "-1%", "15 %", "15%%", "nan", "much"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_percentage(text).has_value());
  }
}

}  // namespace
}  // namespace gxp
