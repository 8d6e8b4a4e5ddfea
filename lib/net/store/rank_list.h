// Ranks for messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace gxp {

// "rank 2, 3, 7"; at most 16 of them: "rank 0, 1, ..., 15 and 48 more".
inline std::string to_text(const std::vector<int>& ranks) {
  constexpr size_t kShown = 16;
  std::string text = "rank";
  for (size_t i = 0; i < ranks.size() && i < kShown; ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", ranks[i]);
  if (ranks.size() > kShown) text += fmt::format(" and {} more", ranks.size() - kShown);
  return text;
}

}  // namespace gxp
