// The largest run that fits into a memory: more of one quantity, all else as it is. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/config/run_config.h"

namespace gxp {

// What a run may have more of until its memory is full.
struct Quantity {
  std::string_view name;
  std::string_view setting;               // that holds it
  int most;                               // that is tried
  int (*least)(const RunConfig& config);  // that the other settings allow
  void (*set)(RunConfig& config, int value);
};

std::span<const Quantity> quantities();

// kUsage with a near match if there is none of that name.
const Quantity& find_quantity(std::string_view name);

}  // namespace gxp
