// The divisors of a number.
#pragma once

#include <cstdint>
#include <vector>

namespace gxp {

// Ascending, 1 and the number among them. Cost: its square root.
inline std::vector<uint64_t> divisors(uint64_t number) {
  std::vector<uint64_t> small;
  std::vector<uint64_t> large;
  for (uint64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    small.push_back(i);
    if (i * i != number) large.push_back(number / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

}  // namespace gxp
