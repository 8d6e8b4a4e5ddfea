// The angles of rotary positions: Su et al., arXiv:2104.09864.
#pragma once

#include <vector>

namespace gxp {

// In each head, channels i and i + pairs turn by position * frequencies[i], with pairs =
// frequencies.size(); the channels behind them stay as they are. Cosines and sines are multiplied
// by `factor` (YaRN's attention factor).
struct Rotary {
  std::vector<double> frequencies = {};
  double factor = 1;

  bool operator==(const Rotary&) const = default;
};

}  // namespace gxp
