// Names of files, taken apart from the front.
#pragma once

#include <charconv>
#include <string_view>

namespace gxp {

// Removes `word` from the front of `text`. Whether it was there.
inline bool skip(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The same for a number in decimal digits that `number` can hold.
template <class Number>
bool skip_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(size_t(end - text.data()));
  return true;
}

}  // namespace gxp
