// The declaration of a setting: the only place that names its key, explains it and limits it.
//
//   struct OptimConfig {
//     double lr = 6e-4;  // the member's initialiser is the default
//     static constexpr auto schema() {
//       return section("optim", "AdamW.", field("lr", &OptimConfig::lr, "Peak rate.", positive));
//     }
//   };
//
// A member is a bool, int, uint64_t, double, string or vector of strings. A key that ends in
// "_bytes" also reads "25MiB".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "lib/base/error.h"

namespace gxp {

// The values that one setting may have: a range for numbers, a list of words for text.
struct Check {
  static constexpr size_t kMaxWords = 12;

  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_is_open = false;   // `low` itself is not allowed
  bool high_is_open = false;  // `high` itself is not allowed
  std::array<std::string_view, kMaxWords> words = {};
  size_t word_count = 0;  // 0: any text
};

inline constexpr Check anything = {};
inline constexpr Check positive = {.low = 0, .low_is_open = true};
constexpr Check at_least(double low) { return {.low = low}; }
constexpr Check at_most(double high) { return {.high = high}; }
constexpr Check between(double low, double high) { return {.low = low, .high = high}; }
constexpr Check at_least_and_below(double low, double high) {
  return {.low = low, .high = high, .high_is_open = true};
}
template <class... Words>
constexpr Check one_of(Words... words) {
  static_assert(sizeof...(words) <= Check::kMaxWords);
  return {.words = {words...}, .word_count = sizeof...(words)};
}

// The same for words that a table has. As many as there are: at most kMaxWords.
inline Check one_of_names(std::span<const std::string_view> names) {
  GXP_ASSERT(names.size() <= Check::kMaxWords);
  Check check{.words = {}, .word_count = names.size()};
  std::ranges::copy(names, check.words.begin());
  return check;
}

template <class Struct, class Member>
struct Field {
  std::string_view key;
  Member Struct::*member;
  std::string_view doc;  // full sentences; says what 0 or "" means where it is special
  Check check;
};

template <class Struct, class Member>
constexpr auto field(std::string_view key, Member Struct::*member, std::string_view doc,
                     const Check& check = anything) {
  return Field<Struct, Member>{key, member, doc, check};
}

template <class... Fields>
struct Section {
  std::string_view name;
  std::string_view doc;
  std::tuple<Fields...> fields;
};

template <class... Fields>
constexpr auto section(std::string_view name, std::string_view doc, Fields... fields) {
  return Section<Fields...>{name, doc, {fields...}};
}

// What takes more than one setting of a section to judge.
template <class Struct>
struct SettingRule {
  std::string_view key;                   // the setting to blame
  std::string_view other;                 // a second one that is judged
  std::string (*problem)(const Struct&);  // "must be even, is 7"; "" if the rule holds
};

}  // namespace gxp
