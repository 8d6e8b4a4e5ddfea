// A list as one text for a message: "1, 2, 3". fmt::join() would do, but what it is made of is
// compiled anew in every file that calls it.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace gxp {

// Of texts or whole numbers, with `between` after each but the last.
template <class Items>
std::string joined(const Items& items, std::string_view between) {
  std::string text;
  std::string_view before;
  for (const auto& item : items) {
    text += before;
    before = between;
    if constexpr (std::convertible_to<decltype(item), std::string_view>) {
      text += std::string_view(item);
    } else {
      static_assert(std::integral<std::remove_cvref_t<decltype(item)>>);
      text += std::to_string(item);
    }
  }
  return text;
}

}  // namespace gxp
