// An enumerator that users write as a word: parsed once, where the setting is read. A header that
// declares such an enum E says its words, in the order of the enumerators:
//   constexpr std::array<std::string_view, 2> words_of(E) { return {"off", "on"}; }
#pragma once

#include <fmt/format.h>

#include <array>
#include <concepts>
#include <string>
#include <string_view>

#include "lib/base/enum_names.h"
#include "lib/base/error.h"

namespace gxp {

template <class E>
class Choice {
 public:
  static constexpr auto kWords = words_of(E{});

  constexpr Choice(E value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  // One of the words, which a setting's schema has checked.
  template <std::convertible_to<std::string_view> Word>
  Choice(const Word& word) {  // NOLINT(google-explicit-constructor)
    const auto found = find_enumerator<E>(kWords, word);
    GXP_ASSERT(found.has_value());
    value_ = *found;
  }
  constexpr operator E() const { return value_; }  // NOLINT(google-explicit-constructor)
  explicit operator std::string() const { return std::string(word()); }
  [[nodiscard]] constexpr std::string_view word() const { return kWords[size_t(value_)]; }

 private:
  E value_{};
};

}  // namespace gxp

template <class E>
struct fmt::formatter<gxp::Choice<E>> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(gxp::Choice<E> choice, Context& context) const {
    return fmt::formatter<std::string_view>::format(choice.word(), context);
  }
};
