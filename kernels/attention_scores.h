// What attention does to the product of a query and a key before the softmax.
#pragma once

#include <compare>
#include <cstddef>

namespace gxp {

struct AttentionScores {
  float scale = 0;    // factor; 0: 1 / sqrt(D)
  float cap = 0;      // then score = cap * tanh(score / cap); 0: none (Gemma 2, arXiv:2408.00118)
  size_t window = 0;  // a query sees so many keys, its own and those before it; 0: all before it
  auto operator<=>(const AttentionScores&) const = default;
};

}  // namespace gxp
