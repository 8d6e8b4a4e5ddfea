#include "lib/optim/adamw.h"

#include <cmath>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

using Floats = std::vector<float>;

struct State {
  Floats weights, first, second;
  explicit State(size_t count) : weights(count), first(count), second(count) {
    for (size_t i = 0; i < count; ++i) weights[i] = float(i % 7) * 0.25f - 0.5f;
  }
  AdamWRange range(const Floats& gradients, bool decay) {
    return {memory_of(weights), memory_of(first), memory_of(second), memory_of(gradients), decay};
  }
};

Floats gradients_of_step(size_t count, int step) {
  Floats gradients(count);
  for (size_t i = 0; i < count; ++i) gradients[i] = std::sin(float(i) + 0.5f * float(step));
  return gradients;
}

// One element, in double, as the paper writes it.
double reference(double w, size_t i, int steps, double lr, double weight_decay, double scale,
                 const OptimConfig& config) {
  double m = 0;
  double v = 0;
  for (int t = 1; t <= steps; ++t) {
    const double g = scale * gradients_of_step(i + 1, t)[i];
    w -= lr * weight_decay * w;
    m = config.beta1 * m + (1 - config.beta1) * g;
    v = config.beta2 * v + (1 - config.beta2) * g * g;
    w -= lr * (m / (1 - std::pow(config.beta1, t))) /
         (std::sqrt(v / (1 - std::pow(config.beta2, t))) + config.eps);
  }
  return w;
}

}  // namespace

TEST_CASE("AdamW computes the paper's update, with decay where it is asked for") {
  const bool decay = GENERATE(true, false);
  const size_t count = GENERATE(0, 1, 37);
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  OptimConfig config;
  config.weight_decay = 0.1;
  AdamW adamw(*ops, config);
  State state(count);
  const Floats start = state.weights;
  for (int t = 1; t <= 5; ++t) {
    adamw.update(state.range(gradients_of_step(count, t), decay), t, 1e-2, 0.5);
  }
  for (size_t i = 0; i < count; ++i) {
    const double expected = reference(start[i], i, 5, 1e-2, decay ? 0.1 : 0.0, 0.5, config);
    CHECK(state.weights[i] == Approx(expected).epsilon(1e-6).margin(1e-7));
  }
}

TEST_CASE("ranges cut in two are updated to the same bits as whole") {
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  AdamW adamw(*ops, {});
  State whole(1001);
  State cut(1001);
  const Floats gradients = gradients_of_step(1001, 1);
  adamw.update(whole.range(gradients, true), 1, 1e-3, 1.0);
  const AdamWRange all = cut.range(gradients, true);
  const size_t border = 333 * sizeof(float);
  const size_t rest = all.weights.bytes - border;
  adamw.update({all.weights.slice(0, border), all.first.slice(0, border),
                all.second.slice(0, border), all.gradients.slice(0, border), true},
               1, 1e-3, 1.0);
  adamw.update({all.weights.slice(border, rest), all.first.slice(border, rest),
                all.second.slice(border, rest), all.gradients.slice(border, rest), true},
               1, 1e-3, 1.0);
  CHECK(whole.weights == cut.weights);
  CHECK(whole.second == cut.second);
}

}  // namespace gxp
