#include "lib/estimate/find_largest.h"

#include <algorithm>

namespace gxp {

Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int least,
                     int most) {
  Largest largest{.bytes = bytes_of(least)};
  if (largest.bytes > limit_bytes) {
    largest.next_bytes = largest.bytes;
    return largest;
  }
  int low = least;
  int high = std::min(2 * low, most + 1);  // does not fit, or has not been tried
  const auto fits = [&](int value) {
    const uint64_t bytes = bytes_of(value);
    (bytes <= limit_bytes ? largest.bytes : largest.next_bytes) = bytes;
    return bytes <= limit_bytes;
  };
  while (high <= most && fits(high)) {
    low = high;
    high = low == most ? most + 1 : std::min(2 * low, most);
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  largest.value = low;
  return largest;
}

}  // namespace gxp
