#include "lib/train/model/sampling.h"

#include <cmath>

#include "tests/catch.h"

namespace gxp {
namespace {

using Probabilities = std::vector<double>;

// Logits with these probabilities.
std::vector<float> logits_of(const Probabilities& p) {
  std::vector<float> logits;
  for (const double each : p) logits.push_back(float(std::log(each)) + 3.0f);
  return logits;
}

TEST_CASE("filters keep the tokens that they say, and what is left adds up to 1", "[train]") {
  const Probabilities p = {0.1, 0.4, 0.2, 0.05, 0.2, 0.05};
  struct Row {
    Sampling sampling;
    Probabilities expected;
  };
  const std::vector<Row> rows = {
      {{.temperature = 1}, p},
      {{.temperature = 0}, {0, 1, 0, 0, 0, 0}},
      {{.temperature = 0, .top_k = 3, .top_p = 0.1, .min_p = 1}, {0, 1, 0, 0, 0, 0}},
      {{.temperature = 0.5}, {4 / 102., 64 / 102., 16 / 102., 1 / 102., 16 / 102., 1 / 102.}},
      {{.temperature = 1, .top_k = 1}, {0, 1, 0, 0, 0, 0}},
      {{.temperature = 1, .top_k = 2},
       {0, 0.5, 0.25, 0, 0.25, 0}},  // the second of two equals stays
      {{.temperature = 1, .top_k = 3}, {0, 0.5, 0.25, 0, 0.25, 0}},
      {{.temperature = 1, .top_k = 100}, p},
      {{.temperature = 1, .top_p = 0.39}, {0, 1, 0, 0, 0, 0}},
      {{.temperature = 1, .top_p = 0.41}, {0, 4 / 6., 2 / 6., 0, 0, 0}},  // the first of two equals
      {{.temperature = 1, .top_p = 0.65}, {0, 0.5, 0.25, 0, 0.25, 0}},
      {{.temperature = 1, .top_p = 0.85}, {1 / 9., 4 / 9., 2 / 9., 0, 2 / 9., 0}},
      {{.temperature = 1, .top_p = 0}, {0, 1, 0, 0, 0, 0}},
      {{.temperature = 1, .top_p = 1}, p},
      {{.temperature = 1, .min_p = 0.24}, {1 / 9., 4 / 9., 2 / 9., 0, 2 / 9., 0}},
      {{.temperature = 1, .min_p = 0.45}, {0, 0.5, 0.25, 0, 0.25, 0}},
      {{.temperature = 1, .min_p = 1}, {0, 1, 0, 0, 0, 0}},
      // Of what top_k leaves, 0.5 + 0.25 reach 0.7; of all, they would not.
      {{.temperature = 1, .top_k = 3, .top_p = 0.7}, {0, 4 / 6., 2 / 6., 0, 0, 0}},
      // Temperature comes first: 0.16 / 0.255 alone reaches 0.6, and 0.04 is a quarter of 0.16.
      {{.temperature = 0.5, .top_p = 0.6}, {0, 1, 0, 0, 0, 0}},
      {{.temperature = 0.5, .min_p = 0.3}, {0, 1, 0, 0, 0, 0}},
  };
  for (const Row& row : rows) {
    const Sampling& s = row.sampling;
    CAPTURE(s.temperature, s.top_k, s.top_p, s.min_p);
    const Probabilities found = token_probabilities(logits_of(p), s);
    REQUIRE(found.size() == p.size());
    for (size_t i = 0; i < p.size(); ++i) CHECK(found[i] == Approx(row.expected[i]).margin(1e-7));
  }
}

TEST_CASE("the likeliest token is the first of equals, also among logits that are far apart",
          "[train]") {
  std::mt19937_64 random(1);
  CHECK(draw_token(std::vector<float>{1, 3, 3, 2}, {.temperature = 0}, random) == 1);
  CHECK(draw_token(std::vector<float>{-1e30f, 1e30f, 0}, {.temperature = 0.1}, random) == 1);
}

TEST_CASE("tokens are drawn as often as their probabilities say", "[train]") {
  const std::vector<float> logits = logits_of({0.5, 0.125, 0.375});
  std::mt19937_64 random(7);
  std::vector<int> counts(3);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) ++counts[size_t(draw_token(logits, {.temperature = 1}, random))];
  // Four standard deviations of the first are 283.
  CHECK(std::abs(counts[0] - kDraws / 2) < 283);
  CHECK(std::abs(counts[1] - kDraws / 8) < 283);
  for (int i = 0; i < 100; ++i)
    CHECK(draw_token(logits, {.temperature = 1, .top_k = 2}, random) != 1);
}

}  // namespace
}  // namespace gxp
