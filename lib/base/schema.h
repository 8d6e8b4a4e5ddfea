// The declaration of a setting: the only place that names its key, explains it and limits it.
//
//   struct OptimConfig {
//     double lr = 6e-4;  // the member's initialiser is the default
//     static void schema(auto& field) {
//       field.section("optim", "AdamW.");
//       field("lr", &OptimConfig::lr, "Peak rate.", positive);
//     }
//   };
//
// A member is a bool, int, uint64_t, double, string, vector of strings or of doubles, or a Choice of
// an enum's words (choice.h). A key that ends in "_bytes" also reads "25MiB". The text after it is full
// sentences, and says what 0 or "" means where that is special. What `field` is:
// lib/config/settings.cc.
//
// A default that depends on another setting: the member is an optional bool or Choice, and a
// function of the struct gives the value, which is printed and compared:
//       field("tied_head", &S::tied_head, &S::ties_head, "Share one weight ...");
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// The values that one setting may have: a range for numbers, a list of words for text.
struct Check {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_is_open = false;                  // `low` itself is not allowed
  bool high_is_open = false;                 // `high` itself is not allowed
  std::vector<std::string_view> words = {};  // literals, or names in a table; empty: any text
};

inline constexpr Check anything = {};
inline constexpr Check positive = {.low = 0, .low_is_open = true};
constexpr Check at_least(double low) { return {.low = low}; }
constexpr Check at_most(double high) { return {.high = high}; }
constexpr Check between(double low, double high) { return {.low = low, .high = high}; }
constexpr Check at_least_and_below(double low, double high) {
  return {.low = low, .high = high, .high_is_open = true};
}
inline Check one_of(std::span<const std::string_view> names) {
  return {.words = {names.begin(), names.end()}};
}
template <class... Words>
Check one_of(const char* first, Words... others) {
  return {.words = {first, others...}};
}

// How commands without a run file spell a setting as an option of their own.
struct OptionForm {
  std::string_view names;  // "-T,--timeout"; "": it has none, and is changed by --set
  std::string_view value;  // "SECONDS"; "": the words that it takes, or N or SIZE by its type
};

// A check that needs more than one setting of a section.
template <class Struct>
struct SettingRule {
  std::string_view key;                   // the setting to blame
  std::string_view other;                 // a second setting that the check reads
  std::string (*problem)(const Struct&);  // "must be even, is 7"; "" if the rule holds
};

}  // namespace gxp
