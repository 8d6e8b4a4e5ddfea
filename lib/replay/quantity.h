// Numbers that more memory allows to grow, in plans of any kind. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace gxp {

// A number in a plan that more memory allows to grow.
template <class Plan>
struct Quantity {
  std::string_view name;           // "batch"
  std::string_view setting;        // that holds it: "--micro-batch"
  int most;                        // that is tried
  int (*least)(const Plan& plan);  // that the other settings allow
  void (*set)(Plan& plan, int value);
};

struct Largest {
  int value = 0;            // 0: not even the least fits
  uint64_t bytes = 0;       // with that; without it, with the least
  uint64_t next_bytes = 0;  // with one more; 0: the most that is tried fits
};

// Finds the largest number whose `bytes_of`, which rises with its argument, fits; from `least` to
// `most`. Cost: some 2 log2(most) calls, none of them with much more than twice the answer.
Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int least,
                     int most);

// The last number from `least` to `most` for which `holds`, which is true up to some number and
// false from there on; least - 1 if it holds for none.
int find_last(const std::function<bool(int)>& holds, int least, int most);

}  // namespace gxp
