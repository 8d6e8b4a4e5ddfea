// The most of something that fits into a memory. Pure.
#pragma once

#include <cstdint>
#include <functional>

namespace gxp {

struct Largest {
  int value = 0;            // 0: not even the least fits
  uint64_t bytes = 0;       // with that; without it, with the least
  uint64_t next_bytes = 0;  // with one more; 0: the most that is tried fits
};

// `bytes_of` rises with its argument, from `least` to `most`. Cost: some 2 log2(most) calls, none
// of them with much more than twice the answer.
Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int least,
                     int most);

}  // namespace gxp
