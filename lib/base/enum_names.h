// Enumerators by the names that users know them by.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace gxp {

// `names` are those of the enumerators, in their order.
template <class Enum, size_t kCount>
std::optional<Enum> find_enumerator(const std::array<std::string_view, kCount>& names,
                                    std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace gxp
