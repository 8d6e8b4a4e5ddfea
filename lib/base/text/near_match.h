// "did you mean": the known name that is nearest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gxp {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
// Cost: O(|a| * |b|). Source: optimal string alignment; Damerau, CACM 7(3), 1964.
size_t edit_distance(std::string_view a, std::string_view b);

// The name nearest to `word`, or "" if none is near (distance above a third of the longer of the
// two).
std::string near_match(std::string_view word, std::span<const std::string> names);

// "; did you mean 'NAME'?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace gxp
