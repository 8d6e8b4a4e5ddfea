// Statistics of repeated timings.
#pragma once

#include <optional>
#include <span>

namespace gxp {

struct Interval {
  double low = 0;
  double high = 0;
};

struct Summary {
  double median = 0;
  double p99 = 0;  // nearest rank: with fewer than 100 samples the largest
  double min = 0;
  double max = 0;
  double mean = 0;
  double deviation = 0;  // standard deviation of these samples
  // 95% confidence interval of the median; without assumption about the distribution. Empty with
  // fewer than 6 samples, for which there is none.
  std::optional<Interval> median_95;
};

// At least one sample, in any order.
Summary summarize(std::span<const double> samples);

}  // namespace gxp
