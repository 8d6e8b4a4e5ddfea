// Which of several plans none is both smaller and faster than.
#pragma once

#include <algorithm>
#include <vector>

namespace gxp {

// Of choices with `bytes` and `seconds`: from the smallest on, those that are faster than all
// before; of equals the first.
template <class Choice>
std::vector<Choice> pareto_of(std::vector<Choice> choices) {
  std::ranges::stable_sort(choices, [](const Choice& a, const Choice& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  std::vector<Choice> best;
  for (const Choice& choice : choices) {
    if (best.empty() || choice.seconds < best.back().seconds) best.push_back(choice);
  }
  return best;
}

}  // namespace gxp
