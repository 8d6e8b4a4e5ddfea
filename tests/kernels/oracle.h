// The operations of kernels/ops.h in double, written from their formulas and nothing else. Each
// backward is itself held against central differences of its forward.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/attention_scores.h"

namespace gxp::oracle {

using Values = std::vector<double>;

inline Values to_values(const std::vector<float>& x) { return {x.begin(), x.end()}; }

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The gradient of f at x: (f(x + h) - f(x - h)) / 2h for each element.
inline Values central_difference(const std::function<double(const Values&)>& f, Values x) {
  constexpr double kStep = 1e-5;
  Values gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = f(x);
    x[i] = at - kStep;
    gradient[i] = (above - f(x)) / (2 * kStep);
    x[i] = at;
  }
  return gradient;
}

inline double gelu(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

inline double gelu_slope(double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const double tanh = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * root * (1 + 3 * 0.044715 * x * x);
}

inline double gelu_erf(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }

inline double silu(double x) { return x / (1 + std::exp(-x)); }

inline double relu(double x) { return x > 0 ? x : 0; }

struct LayerNorm {
  Values out, mean, rstd;
};

inline LayerNorm layernorm(const Values& x, const Values& weight, const Values& bias, double eps) {
  const size_t columns = weight.size();
  LayerNorm result{Values(x.size()), {}, {}};
  for (size_t row = 0; row < x.size(); row += columns) {
    double mean = 0;
    for (size_t c = 0; c < columns; ++c) mean += x[row + c] / double(columns);
    double variance = 0;
    for (size_t c = 0; c < columns; ++c)
      variance += (x[row + c] - mean) * (x[row + c] - mean) / double(columns);
    const double rstd = 1 / std::sqrt(variance + eps);
    for (size_t c = 0; c < columns; ++c)
      result.out[row + c] = (x[row + c] - mean) * rstd * weight[c] + bias[c];
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
  }
  return result;
}

struct LayerNormGradients {
  Values dx, dweight, dbias;
};

inline LayerNormGradients layernorm_gradients(const Values& x, const Values& weight,
                                              const Values& dout, double eps) {
  const size_t columns = weight.size();
  const LayerNorm norm = layernorm(x, Values(columns, 1), Values(columns, 0), eps);
  LayerNormGradients result{Values(x.size()), Values(columns), Values(columns)};
  for (size_t row = 0; row < x.size(); row += columns) {
    double mean_g = 0;
    double mean_g_norm = 0;
    for (size_t c = 0; c < columns; ++c) {
      mean_g += dout[row + c] * weight[c] / double(columns);
      mean_g_norm += dout[row + c] * weight[c] * norm.out[row + c] / double(columns);
      result.dweight[c] += dout[row + c] * norm.out[row + c];
      result.dbias[c] += dout[row + c];
    }
    for (size_t c = 0; c < columns; ++c) {
      result.dx[row + c] = norm.rstd[row / columns] *
                           (dout[row + c] * weight[c] - mean_g - norm.out[row + c] * mean_g_norm);
    }
  }
  return result;
}

// log of the sum of e^x over [begin, begin + count).
inline double log_sum_exp(const Values& x, size_t begin, size_t count) {
  double maximum = x[begin];
  for (size_t i = 1; i < count; ++i) maximum = std::max(maximum, x[begin + i]);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(x[begin + i] - maximum);
  return maximum + std::log(sum);
}

inline double loss(const Values& logits, size_t row, size_t columns, int32_t target) {
  if (target < 0) return 0;
  return log_sum_exp(logits, row * columns, columns) - logits[row * columns + size_t(target)];
}

// The gradient of one row's loss, times `scale`.
inline Values loss_gradient(const Values& logits, size_t row, size_t columns, int32_t target,
                            double scale) {
  Values gradient(columns);
  if (target < 0) return gradient;
  const double lse = log_sum_exp(logits, row * columns, columns);
  for (size_t c = 0; c < columns; ++c)
    gradient[c] = std::exp(logits[row * columns + c] - lse) * scale;
  gradient[size_t(target)] -= scale;
  return gradient;
}

struct AttentionSizes {
  size_t batch, positions, heads, head_size;
  [[nodiscard]] size_t channels() const { return heads * head_size; }
  [[nodiscard]] size_t pairs() const { return batch * heads; }
  // Element 0 of position t in slice 0, 1, 2 (query, key, value) of a pair in (B, T, 3C).
  [[nodiscard]] size_t in_qkv(size_t pair, size_t slice, size_t t) const {
    return (pair / heads * positions + t) * 3 * channels() + slice * channels() +
           pair % heads * head_size;
  }
  [[nodiscard]] size_t in_out(size_t pair, size_t t) const {
    return (pair / heads * positions + t) * channels() + pair % heads * head_size;
  }
};

struct Attention {
  Values out, lse;
};

// The first key that position t sees.
inline size_t first_key(const AttentionScores& how, size_t t) {
  return how.window != 0 && t >= how.window ? t + 1 - how.window : 0;
}

// Of the keys from 0 to t, those that t does not see with minus infinity.
inline Values scores_of(const AttentionSizes& s, const Values& qkv, const AttentionScores& how,
                        size_t pair, size_t t) {
  const double scale = how.scale != 0 ? how.scale : 1 / std::sqrt(double(s.head_size));
  Values scores(t + 1, -std::numeric_limits<double>::infinity());
  for (size_t key = first_key(how, t); key <= t; ++key) {
    double product = 0;
    for (size_t d = 0; d < s.head_size; ++d)
      product += qkv[s.in_qkv(pair, 0, t) + d] * qkv[s.in_qkv(pair, 1, key) + d];
    const double score = product * scale;
    scores[key] = how.cap != 0 ? how.cap * std::tanh(score / how.cap) : score;
  }
  return scores;
}

inline Attention attention(const AttentionSizes& s, const Values& qkv,
                           const AttentionScores& how = {}) {
  Attention result{Values(s.batch * s.positions * s.channels()), {}};
  for (size_t pair = 0; pair < s.pairs(); ++pair) {
    for (size_t t = 0; t < s.positions; ++t) {
      const Values scores = scores_of(s, qkv, how, pair, t);
      const double lse = log_sum_exp(scores, 0, t + 1);
      result.lse.push_back(lse);
      for (size_t key = first_key(how, t); key <= t; ++key) {
        const double p = std::exp(scores[key] - lse);
        for (size_t d = 0; d < s.head_size; ++d)
          result.out[s.in_out(pair, t) + d] += p * qkv[s.in_qkv(pair, 2, key) + d];
      }
    }
  }
  return result;
}

// By the chain rule over the softmax's Jacobian: ds_k = p_k (dp_k - sum_j p_j dp_j), and over the
// cap's derivative, 1 - tanh^2.
inline Values attention_gradient(const AttentionSizes& s, const Values& qkv, const Values& dout,
                                 const AttentionScores& how = {}) {
  Values dqkv(qkv.size());
  const double scale = how.scale != 0 ? how.scale : 1 / std::sqrt(double(s.head_size));
  for (size_t pair = 0; pair < s.pairs(); ++pair) {
    for (size_t t = 0; t < s.positions; ++t) {
      const Values scores = scores_of(s, qkv, how, pair, t);
      const double lse = log_sum_exp(scores, 0, t + 1);
      Values p(t + 1);
      Values dp(t + 1);
      for (size_t key = first_key(how, t); key <= t; ++key) {
        p[key] = std::exp(scores[key] - lse);
        for (size_t d = 0; d < s.head_size; ++d) {
          dp[key] += dout[s.in_out(pair, t) + d] * qkv[s.in_qkv(pair, 2, key) + d];
          dqkv[s.in_qkv(pair, 2, key) + d] += p[key] * dout[s.in_out(pair, t) + d];
        }
      }
      const double mean = dot(p, dp);
      for (size_t key = first_key(how, t); key <= t; ++key) {
        const double slope = how.cap != 0 ? 1 - std::pow(scores[key] / how.cap, 2) : 1;
        const double ds = p[key] * (dp[key] - mean) * slope * scale;
        for (size_t d = 0; d < s.head_size; ++d) {
          dqkv[s.in_qkv(pair, 0, t) + d] += ds * qkv[s.in_qkv(pair, 1, key) + d];
          dqkv[s.in_qkv(pair, 1, key) + d] += ds * qkv[s.in_qkv(pair, 0, t) + d];
        }
      }
    }
  }
  return dqkv;
}

}  // namespace gxp::oracle
