// The largest run that fits into a memory: more of one quantity, all else as it is. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "lib/config/run_config.h"

namespace gxp {

// What a run may have more of until its memory is full.
struct Quantity {
  std::string_view name;
  std::string_view setting;  // that holds it
  int most;                  // that is tried
  void (*set)(RunConfig& config, int value);
};

std::span<const Quantity> quantities();

// kUsage with a near match if there is none of that name.
const Quantity& find_quantity(std::string_view name);

struct Largest {
  int value = 0;            // 0: not even 1 fits
  uint64_t bytes = 0;       // with that; without it, with 1
  uint64_t next_bytes = 0;  // with one more; 0: the most that is tried fits
};

// `bytes_of` rises with its argument, from 1 to `most`. Cost: some 2 log2(most) calls, none of them
// with much more than twice the answer.
Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int most);

}  // namespace gxp
