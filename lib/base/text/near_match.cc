#include "lib/base/text/near_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gxp {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string near_match(std::string_view word, std::span<const std::string> names) {
  std::string best;
  size_t best_distance = ~size_t{0};
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance * 3 <= std::max(word.size(), name.size()) && distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string match = near_match(word, names);
  return match.empty() ? "" : fmt::format("; did you mean '{}'?", match);
}

}  // namespace gxp
