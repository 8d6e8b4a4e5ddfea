// A contiguous run of elements: [begin, begin + count).
#pragma once

#include <cstddef>

namespace gxp {

struct Range {
  size_t begin = 0;
  size_t count = 0;
  [[nodiscard]] size_t end() const { return begin + count; }
  friend bool operator==(const Range&, const Range&) = default;
};

}  // namespace gxp
