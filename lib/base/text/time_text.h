// Durations, for messages.
#pragma once

#include <fmt/format.h>

#include <string>

namespace gxp {

// "41.2 us", "2.95 ms", "1.5 s".
inline std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

}  // namespace gxp
