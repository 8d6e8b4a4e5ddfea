// Numbers and pieces in the text that sources of topologies write.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>

#include "lib/base/text/ascii.h"

namespace gxp {

// The number that `text` begins with, and how long it is; 0 and 0 if it begins with none.
template <class Number>
Number leading_number(std::string_view text, size_t* length = nullptr, int base = 10) {
  Number number{};
  std::from_chars_result result{};
  const char* const last = text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>)
    result = std::from_chars(text.data(), last, number);
  else
    result = std::from_chars(text.data(), last, number, base);
  if (length != nullptr) *length = result.ec == std::errc() ? size_t(result.ptr - text.data()) : 0;
  return number;
}

// The number that all of `text` is; nothing if it is anything else.
template <class Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  size_t length = 0;
  const auto number = leading_number<Number>(text, &length, base);
  return length > 0 && length == text.size() ? std::optional(number) : std::nullopt;
}

// The pieces between the separators, also empty ones, one by one; none of an empty text.
// Not std::views::split: Clang before 16 does not compile the views of libstdc++.
class Pieces {
 public:
  class Iterator {
   public:
    Iterator(std::string_view rest, char separator, bool ended)
        : rest_(rest), separator_(separator), ended_(ended) {}
    std::string_view operator*() const { return rest_.substr(0, rest_.find(separator_)); }
    Iterator& operator++() {
      const size_t length = (**this).size();
      ended_ = length == rest_.size();
      if (!ended_) rest_.remove_prefix(length + 1);
      return *this;
    }
    // For loops: whether it is the end, which has no position.
    bool operator!=(const Iterator& end) const { return ended_ != end.ended_; }

   private:
    std::string_view rest_;  // from the piece on
    char separator_;
    bool ended_;
  };

  Pieces(std::string_view text, char separator) : text_(text), separator_(separator) {}
  [[nodiscard]] Iterator begin() const { return {text_, separator_, text_.empty()}; }
  [[nodiscard]] Iterator end() const { return {{}, separator_, true}; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

 private:
  std::string_view text_;
  char separator_;
};

inline Pieces split(std::string_view text, char separator) { return {text, separator}; }

// The rest of the line after `key`, without the blanks around it; "" if `text` has no such key.
inline std::string_view value_behind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + key.size());
  return trimmed(text.substr(0, text.find('\n')));
}

}  // namespace gxp
