#include "lib/config/profile_range.h"

#include <charconv>

namespace gxp {

std::optional<ProfileRange> parse_profile_range(std::string_view text) {
  ProfileRange range;
  const char* const end = text.data() + text.size();
  const auto [dash, no_first] = std::from_chars(text.data(), end, range.first);
  if (no_first != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, no_last] = std::from_chars(dash + 1, end, range.last);
  if (no_last != std::errc() || rest != end) return std::nullopt;
  if (range.first < 1 || range.last < range.first) return std::nullopt;
  return range;
}

}  // namespace gxp
