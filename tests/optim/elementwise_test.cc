#include <fstream>

#include "tests/catch.h"
#include "tests/optim/optimizers.h"

namespace gxp {
namespace {

using Sets = std::vector<std::string>;

// The published update of one weight w with gradient g in step t; m and v are what is kept.
struct Kept {
  double w, m = 0, v = 0;
};
using Update = void (*)(Kept& k, double g, int t, double decay, const OptimConfig& c);

void adam_step(Kept& k, double g, int t, const OptimConfig& c) {
  k.m = c.beta1 * k.m + (1 - c.beta1) * g;
  k.v = c.beta2 * k.v + (1 - c.beta2) * g * g;
  const double root = std::sqrt(k.v / (1 - std::pow(c.beta2, t))) + c.eps;
  k.w -= c.lr * (k.m / (1 - std::pow(c.beta1, t))) / root;
}

void adamw(Kept& k, double g, int t, double decay, const OptimConfig& c) {
  k.w -= c.lr * decay * k.w;
  adam_step(k, g, t, c);
}

void adam(Kept& k, double g, int t, double decay, const OptimConfig& c) {
  adam_step(k, g + decay * k.w, t, c);
}

void sgd(Kept& k, double g, int t, double decay, const OptimConfig& c) {
  g += decay * k.w;
  k.m = t == 1 ? g : c.momentum * k.m + (1 - c.dampening) * g;
  k.w -= c.lr * (c.nesterov ? g + c.momentum * k.m : k.m);
}

void lion(Kept& k, double g, int /*t*/, double decay, const OptimConfig& c) {
  const double blend = c.beta1 * k.m + (1 - c.beta1) * g;
  k.w -= c.lr * ((blend > 0 ? 1 : blend < 0 ? -1 : 0) + decay * k.w);
  k.m = c.beta2 * k.m + (1 - c.beta2) * g;
}

struct Case {
  Sets sets;
  Update update;
};

std::vector<Case> cases() {
  return {{{"optim.name=adamw", "optim.lr=0.01"}, adamw},
          {{"optim.name=adam", "optim.lr=0.01", "optim.weight_decay=0.2"}, adam},
          {{"optim.name=sgd", "optim.lr=0.1", "optim.weight_decay=0.2"}, sgd},
          {{"optim.name=sgd", "optim.lr=0.1", "optim.momentum=0.9", "optim.dampening=0.4"}, sgd},
          {{"optim.name=sgd", "optim.lr=0.1", "optim.momentum=0.9", "optim.nesterov=true"}, sgd},
          {{"optim.name=lion", "optim.lr=0.01", "optim.weight_decay=0.5"}, lion}};
}

TEST_CASE("an optimizer computes its published update, with decay where it is asked for",
          "[optim]") {
  const Case row = GENERATE(from_range(cases()));
  const bool decay = GENERATE(true, false);
  const size_t count = GENERATE(0, 1, 37);
  const OptimConfig config = optim_config(row.sets);
  CAPTURE(row.sets, decay, count);
  Trial trial(config, count);
  for (int t = 1; t <= 6; ++t) trial.step(t, decay, 0, 0.5);
  for (size_t i = 0; i < count; ++i) {
    Kept kept{weight_at_start(i)};
    for (int t = 1; t <= 6; ++t)
      row.update(kept, 0.5 * gradient_of_step(i, t), t, decay ? config.weight_decay : 0, config);
    CHECK(trial.weights()[i] == Approx(kept.w).epsilon(1e-6).margin(1e-6));
  }
}

TEST_CASE("ranges cut in two are updated to the same bits as whole", "[optim]") {
  const Case row = GENERATE(from_range(cases()));
  CAPTURE(row.sets);
  Trial whole(optim_config(row.sets), 3001);
  Trial cut(optim_config(row.sets), 3001);
  for (int t = 1; t <= 3; ++t) {
    whole.step(t);
    cut.step(t, true, 333);
  }
  CHECK(whole.weights() == cut.weights());
  CHECK(whole.kept() == cut.kept());
}

TEST_CASE("the weights are those of PyTorch's optimizers", "[optim]") {
  const auto rows = nlohmann::json::parse(
      std::ifstream(std::string(GXP_TEST_DATA) + "/optim/torch_optimizers.json"));
  for (const auto& row : rows) {
    if (row.contains("shape")) continue;  // whole_test.cc's
    const Sets sets = sets_of(row);
    CAPTURE(sets);
    const auto expected = row["weights"].get<std::vector<double>>();
    Trial trial(optim_config(sets), expected.size());
    for (int t = 1; t <= row["steps"].get<int>(); ++t) trial.step(t);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(trial.weights()[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-6));
  }
}

TEST_CASE("a weight without gradient and momentum is left alone by Lion, and NaN shows",
          "[optim]") {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  Floats weights = {1, 1}, momentum = {0, 0}, gradients = {0, NAN};
  const auto tensor = [](Floats& x) { return Tensor(memory_of(x), DType::kF32, Shape{2}); };
  ops->lion(tensor(weights), tensor(momentum), tensor(gradients), {0.1, 0.9, 0.99, 0, 1});
  CHECK(weights[0] == 1);
  CHECK(std::isnan(weights[1]));
}

}  // namespace
}  // namespace gxp
