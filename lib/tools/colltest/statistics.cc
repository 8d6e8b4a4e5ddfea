#include "lib/tools/colltest/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/median.h"

namespace gxp {
namespace {

// How many samples at each end lie outside the interval. The number of samples below the median is
// binomial (n, 1/2): exact up to 1000 samples, by the normal approximation above. Le Boudec,
// Performance Evaluation of Computer and Communication Systems, 2010, section 2.2.
size_t outside(size_t n) {
  if (n > 1000) return size_t((double(n) - 1.96 * std::sqrt(double(n))) / 2);
  double probability = std::exp2(-double(n));  // of exactly k below
  double cumulative = probability;
  size_t k = 0;
  while (cumulative <= 0.025) {
    probability *= double(n - k) / double(k + 1);
    ++k;
    cumulative += probability;
  }
  return k;
}

std::optional<Interval> median_interval(const std::vector<double>& sorted) {
  const size_t skipped = outside(sorted.size());
  if (skipped == 0) return std::nullopt;
  return Interval{sorted[skipped - 1], sorted[sorted.size() - skipped]};
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  GXP_ASSERT(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const auto n = double(sorted.size());
  Summary summary;
  summary.median = median_of(sorted);
  summary.p99 = sorted[(99 * sorted.size() + 99) / 100 - 1];
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double sample : sorted) squares += std::pow(sample - summary.mean, 2);
  summary.deviation = std::sqrt(squares / n);
  summary.median_95 = median_interval(sorted);
  return summary;
}

}  // namespace gxp
