// English plurals, for messages that count.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gxp {

// "1 host", "2 hosts", "3 switches".
inline std::string counted(size_t count, std::string_view what) {
  const bool hisses = what.ends_with("ch");
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : hisses ? "es" : "s");
}

}  // namespace gxp
