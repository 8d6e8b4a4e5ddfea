// The middle of a few numbers.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace gxp {

// The mean of the two in the middle if the count is even; 0 if there are no samples.
inline double median_of(std::span<const double> samples) {
  if (samples.empty()) return 0;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace gxp
