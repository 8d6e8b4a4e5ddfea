#include "lib/optim/lr_schedule.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

LrScheduleConfig schedule(const std::string& name, int warmup, int total, double min_lr) {
  LrScheduleConfig config;
  config.name = name;
  config.warmup_steps = warmup;
  config.total_steps = total;
  config.min_lr = min_lr;
  return config;
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(std::string(GXP_TEST_DATA) + "/train/" + path);
  INFO(path);
  REQUIRE(file.good());
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("each step has the learning rate that PyTorch's run had") {
  struct Run {
    std::string name;
    double peak;
    LrScheduleConfig config;
  };
  const auto run = GENERATE(Run{"gpt2-tiny", 1e-3, schedule("cosine", 4, 19, 1e-4)},
                            Run{"gpt2-accum", 3e-3, schedule("linear", 3, 11, 0.0)});
  CAPTURE(run.name);
  const nlohmann::json trace = read_json(run.name + "/trace.json");
  for (const auto& step : trace.at("float64")) {
    const int t = step.at("step");
    CAPTURE(t);
    CHECK(learning_rate(run.config, run.peak, t, 1000) ==
          Approx(step.at("lr").get<double>()).epsilon(1e-14));
  }
}

// Of PyTorch 2.11 with a peak of 1: CosineAnnealingLR(T_max=8, eta_min=0.1), LinearLR(1, 0.1, 8), and
// SequentialLR([LinearLR(1 / 3, 1, 2), CosineAnnealingLR(T_max=6, eta_min=0.1)], [2]).
TEST_CASE("a schedule has the rates of PyTorch's schedulers, and its last step is above min_lr") {
  struct Run {
    LrScheduleConfig config;
    std::vector<double> rates;
  };
  const auto run =
      GENERATE(Run{schedule("cosine", 0, 8, 0.1),
                   {1, 0.9657457896300791, 0.8681980515339464, 0.7222075445642905, 0.55,
                    0.3777924554357097, 0.2318019484660537, 0.134254210369921, 0.1, 0.1}},
               Run{schedule("linear", 0, 8, 0.1),
                   {1, 0.8875, 0.775, 0.6625, 0.55, 0.4375, 0.325, 0.2125, 0.1, 0.1}},
               Run{schedule("cosine", 3, 8, 0.1),
                   {1.0 / 3, 2.0 / 3, 1, 0.9397114317029974, 0.775, 0.55, 0.325, 0.1602885682970026,
                    0.1, 0.1}});
  for (size_t i = 0; i < run.rates.size(); ++i) {
    CAPTURE(run.config.name, run.config.warmup_steps, i);
    CHECK(learning_rate(run.config, 1.0, int64_t(i) + 1, 1000) == Approx(run.rates[i]));
  }
}

TEST_CASE("every schedule rises linearly to the peak in the warm-up") {
  const std::string name(GENERATE(from_range(lr_schedule_names())));
  CAPTURE(name);
  const auto config = schedule(name, 8, 100, 0.125);
  for (int t = 1; t <= 8; ++t) CHECK(learning_rate(config, 1.0, t, 100) == t / 8.0);
}

TEST_CASE("schedules whose shape names min_lr fall to it and stay there, the others never fall") {
  const std::pair<std::string, std::string> rows[] = {
#define GXP_LR_SCHEDULE(name, shape, rate) {#name, shape},
#include "lib/config/lr_schedules.inc"
#undef GXP_LR_SCHEDULE
  };
  for (const auto& [name, shape] : rows) {
    CAPTURE(name, shape);
    const auto config = schedule(name, 10, 100, 0.1);
    const double end = shape.find("min_lr") != std::string::npos ? 0.1 : 0.7;
    CHECK(learning_rate(config, 0.7, 101, 100) == end);
    CHECK(learning_rate(config, 0.7, 5000, 100) == end);
    CHECK(learning_rate(config, 0.7, 100, 100) > 0.1);
    for (int t = 11; t < 100; ++t)
      CHECK(learning_rate(config, 0.7, t + 1, 100) <= learning_rate(config, 0.7, t, 100));
  }
}

TEST_CASE("wsd keeps the peak, then falls linearly over the last decay_fraction of the steps") {
  auto config = schedule("wsd", 10, 100, 0.0);
  config.decay_fraction = 0.25;
  CHECK(learning_rate(config, 0.7, 11, 100) == 0.7);
  CHECK(learning_rate(config, 0.7, 75, 100) == 0.7);
  CHECK(learning_rate(config, 1.0, 80, 100) == Approx(0.84));
  CHECK(learning_rate(config, 1.0, 95, 100) == Approx(0.24));
}

TEST_CASE("a wsd that decays all the time starts to fall after the warm-up") {
  auto config = schedule("wsd", 20, 100, 0.0);
  config.decay_fraction = 1.0;
  CHECK(learning_rate(config, 1.0, 20, 100) == 1.0);
  CHECK(learning_rate(config, 1.0, 60, 100) == Approx(1.0 - 40.0 / 81));
  config.decay_fraction = 0.0;
  CHECK(learning_rate(config, 1.0, 100, 100) == 1.0);
  CHECK(learning_rate(config, 1.0, 101, 100) == 0.0);
}

TEST_CASE("total_steps 0 means the steps of the run") {
  const auto config = schedule("linear", 0, 0, 0.0);
  CHECK(learning_rate(config, 1.0, 25, 100) == Approx(0.76));
  CHECK(learning_rate(config, 1.0, 100, 100) == Approx(0.01));
  CHECK(learning_rate(config, 1.0, 101, 100) == 0.0);
}

TEST_CASE("a warm-up longer than the run still rises") {
  const auto config = schedule("cosine", 50, 20, 0.0);
  CHECK(learning_rate(config, 1.0, 25, 20) == 0.5);
  CHECK(learning_rate(config, 1.0, 51, 20) == 0.0);
}

TEST_CASE("an unknown schedule is an error with the name that is meant") {
  const auto config = schedule("cosin", 0, 10, 0.0);
  CHECK_THROWS_WITH(learning_rate(config, 1.0, 1, 10),
                    Catch::Matchers::Contains("did you mean 'cosine'"));
}

}  // namespace gxp
