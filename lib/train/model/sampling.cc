#include "lib/train/model/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "lib/base/error.h"

namespace gxp {
namespace {

void scale_to_one(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

void keep_top_k(std::vector<double>& p, size_t k) {
  if (k == 0 || k >= p.size()) return;
  std::vector<double> sorted = p;
  std::ranges::nth_element(sorted, sorted.begin() + std::ptrdiff_t(k) - 1, std::greater<>());
  const double least = sorted[k - 1];
  for (double& each : p)
    if (each < least) each = 0;
}

void keep_top_p(std::vector<double>& p, double share) {
  if (share >= 1) return;
  std::vector<size_t> tokens(p.size());
  std::iota(tokens.begin(), tokens.end(), size_t{0});
  std::ranges::stable_sort(tokens, std::greater<>(), [&](size_t token) { return p[token]; });
  double likelier = 0;
  for (const size_t token : tokens) {
    const bool is_kept = likelier < share || likelier == 0;
    likelier += p[token];
    if (!is_kept) p[token] = 0;
  }
}

void keep_min_p(std::vector<double>& p, double share) {
  const double least = share * *std::ranges::max_element(p);
  for (double& each : p)
    if (each < least) each = 0;
}

}  // namespace

std::vector<double> token_probabilities(std::span<const float> logits, const Sampling& sampling) {
  const auto largest = std::ranges::max_element(logits);
  GXP_ASSERT(largest != logits.end());
  std::vector<double> p(logits.size());
  if (sampling.temperature == 0) {
    p[size_t(largest - logits.begin())] = 1;
    return p;
  }
  std::ranges::transform(logits, p.begin(), [&](float logit) {
    return std::exp((double(logit) - double(*largest)) / sampling.temperature);
  });
  keep_top_k(p, size_t(sampling.top_k));
  scale_to_one(p);
  keep_top_p(p, sampling.top_p);
  keep_min_p(p, sampling.min_p);
  scale_to_one(p);
  return p;
}

int32_t draw_token(std::span<const float> logits, const Sampling& sampling,
                   std::mt19937_64& random) {
  const std::vector<double> p = token_probabilities(logits, sampling);
  double left = double(random() >> 11) * 0x1p-53;  // in [0, 1)
  size_t last = 0;                                 // of the tokens that are kept
  for (size_t token = 0; token < p.size(); ++token) {
    if (p[token] == 0) continue;
    last = token;
    left -= p[token];
    if (left < 0) break;
  }
  return int32_t(last);
}

}  // namespace gxp
