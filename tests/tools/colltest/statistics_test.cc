#include "lib/tools/colltest/statistics.h"

#include <numeric>
#include <vector>

#include "lib/base/median.h"
#include "tests/catch.h"

namespace gxp {
namespace {

// n, n - 1, ..., 1
std::vector<double> countdown(int n) {
  std::vector<double> samples(static_cast<size_t>(n));
  std::iota(samples.rbegin(), samples.rend(), 1.0);
  return samples;
}

TEST_CASE("a summary is right for samples in any order", "[bench]") {
  const Summary summary = summarize(countdown(200));
  CHECK(summary.median == 100.5);
  CHECK(summary.p99 == 198);
  CHECK(summary.min == 1);
  CHECK(summary.max == 200);
  CHECK(summary.mean == Approx(100.5));
  CHECK(summary.deviation == Approx(57.7343));
  CHECK(median_of(countdown(3)) == 2);
}

TEST_CASE("one sample is all of its summary, without an interval", "[bench]") {
  const Summary summary = summarize(std::vector{2.5});
  CHECK(summary.median == 2.5);
  CHECK(summary.p99 == 2.5);
  CHECK(summary.deviation == 0);
  CHECK_FALSE(summary.median_95.has_value());
}

// The ranks are those of Le Boudec, Performance Evaluation, table A.1.
TEST_CASE("the median's interval has the ranks of the binomial table", "[bench]") {
  const auto [n, low, high] =
      GENERATE(table<int, int, int>({{6, 1, 6}, {9, 2, 8}, {20, 6, 15}, {70, 27, 44}}));
  CAPTURE(n);
  const auto interval = summarize(countdown(n)).median_95;
  REQUIRE(interval.has_value());
  CHECK(interval->low == low);
  CHECK(interval->high == high);
}

TEST_CASE("the interval narrows steadily where the approximation takes over", "[bench]") {
  const auto width = [](int n) {
    const auto interval = summarize(countdown(n)).median_95;
    return (interval->high - interval->low) / n;
  };
  CHECK(width(1001) == Approx(width(1000)).epsilon(0.05));
  CHECK(width(4000) == Approx(width(1000) / 2).epsilon(0.05));
}

}  // namespace
}  // namespace gxp
