// Which token follows, by the logits of all. Pure.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace gxp {

// Of the tokens, each filter in this order keeps some of those that the one before it has kept, and
// always the likeliest. Source: transformers 5.24, generation/logits_process.py.
struct Sampling {
  double temperature = 0.8;  // divides the logits; 0: the likeliest token, the first of equals
  int top_k = 0;             // the k largest logits, and those that equal the last of them; 0: all
  double top_p = 1;  // the smallest set of likeliest tokens whose probabilities' sum reaches p
  double min_p = 0;  // those with at least p times the largest probability
};

// By token; 0 for those that are not kept. The sum is 1.
std::vector<double> token_probabilities(std::span<const float> logits, const Sampling& sampling);

int32_t draw_token(std::span<const float> logits, const Sampling& sampling,
                   std::mt19937_64& random);

}  // namespace gxp
