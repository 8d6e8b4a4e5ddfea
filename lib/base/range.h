// A contiguous run of elements: [begin, begin + count).
#pragma once

#include <algorithm>
#include <cstddef>

namespace gxp {

struct Range {
  size_t begin = 0;
  size_t count = 0;
  [[nodiscard]] size_t end() const { return begin + count; }
  friend bool operator==(const Range&, const Range&) = default;
};

// The intersection; without elements if it is empty.
inline Range intersection(const Range& a, const Range& b) {
  const size_t begin = std::max(a.begin, b.begin);
  const size_t end = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

// Both, where the second begins at the first one's end.
inline Range joined(const Range& first, const Range& second) {
  return {first.begin, first.count + second.count};
}

}  // namespace gxp
