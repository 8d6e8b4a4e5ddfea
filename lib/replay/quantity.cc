#include "lib/replay/quantity.h"

#include <algorithm>

namespace gxp {

int find_last(const std::function<bool(int)>& holds, int least, int most) {
  if (!holds(least)) return least - 1;
  int low = least;
  int high = std::min(2 * low, most + 1);  // does not hold, or has not been tried
  while (high <= most && holds(high)) {
    low = high;
    high = low == most ? most + 1 : std::min(2 * low, most);
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int least,
                     int most) {
  Largest largest;
  const auto fits = [&](int value) {
    const uint64_t bytes = bytes_of(value);
    (bytes <= limit_bytes ? largest.bytes : largest.next_bytes) = bytes;
    return bytes <= limit_bytes;
  };
  const int value = find_last(fits, least, most);
  if (value < least) return {.bytes = largest.next_bytes, .next_bytes = largest.next_bytes};
  largest.value = value;
  return largest;
}

}  // namespace gxp
