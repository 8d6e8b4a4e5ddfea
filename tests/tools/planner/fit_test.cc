// The constants of lib/replay/hardware.cc, fitted again: to all rows that tests/data/plan has,
// and to random halves of them, which must predict the other half.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lib/tools/planner/predict_time.h"
#include "tests/catch.h"
#include "tests/tools/planner/published_runs.h"

namespace gxp {
namespace {

using Constant = double Generation::*;
using Numbers = std::vector<double>;

// A published run on hardware whose constants may change.
struct Sample {
  TrainCase question;
  double seconds = 0;
};

std::vector<Sample> samples_of(const std::vector<const PublishedRuns*>& tables,
                               std::string_view generation) {
  std::vector<Sample> samples;
  for (const PublishedRuns* table : tables) {
    for (const PublishedRun& run : table->runs) {
      if (run.question.hardware->gpu->generation->name == generation)
        samples.push_back({run.question, run.seconds});
    }
  }
  return samples;
}

// The error of the logarithm of the time.
double error_of(const Sample& sample, const Generation& generation) {
  Gpu gpu = *sample.question.hardware->gpu;
  gpu.generation = &generation;
  Hardware hardware = *sample.question.hardware;
  hardware.gpu = &gpu;
  TrainCase question = sample.question;
  question.hardware = &hardware;
  return std::log(predict_time(question).seconds() / sample.seconds);
}

// The constants' logarithms are pulled to where they start with this weight, so that one which no
// row tells stays there.
constexpr double kPull = 0.05;

Numbers residuals(const std::vector<Sample>& samples, const Generation& start,
                  const Generation& generation, const std::vector<Constant>& constants) {
  Numbers result;
  for (const Sample& sample : samples) result.push_back(error_of(sample, generation));
  for (const Constant constant : constants)
    result.push_back(kPull * std::log(generation.*constant / start.*constant));
  return result;
}

// Solves a x = b, a symmetric and positive, in place.
Numbers solve(std::vector<Numbers> a, Numbers b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (size_t column = i; column < n; ++column) a[row][column] -= factor * a[i][column];
      b[row] -= factor * b[i];
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t column = i + 1; column < n; ++column) b[i] -= a[i][column] * b[column];
    b[i] /= a[i][i];
  }
  return b;
}

double square_of(const Numbers& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return sum;
}

// One step of Levenberg and Marquardt's method over the logarithms of the constants.
Generation improve(const std::vector<Sample>& samples, const Generation& start,
                   const Generation& now, const std::vector<Constant>& constants, double damping) {
  constexpr double kStep = 1e-4;
  const Numbers base = residuals(samples, start, now, constants);
  std::vector<Numbers> slopes;
  for (const Constant constant : constants) {
    Generation other = now;
    other.*constant *= 1 + kStep;
    Numbers slope = residuals(samples, start, other, constants);
    for (size_t i = 0; i < slope.size(); ++i) slope[i] = (slope[i] - base[i]) / kStep;
    slopes.push_back(std::move(slope));
  }
  const size_t n = constants.size();
  std::vector<Numbers> a(n, Numbers(n));
  Numbers b(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j)
      a[i][j] = std::inner_product(slopes[i].begin(), slopes[i].end(), slopes[j].begin(), 0.0);
    b[i] = -std::inner_product(slopes[i].begin(), slopes[i].end(), base.begin(), 0.0);
    a[i][i] += damping;
  }
  const Numbers step = solve(a, b);
  Generation next = now;
  for (size_t i = 0; i < n; ++i) next.*constants[i] *= std::exp(std::clamp(step[i], -0.5, 0.5));
  next.network_share_fsdp = std::min(next.network_share_fsdp, 0.95);  // no ring carries more
  return next;
}

Generation fit(const std::vector<Sample>& samples, const Generation& start,
               const std::vector<Constant>& constants) {
  Generation best = start;
  double least = square_of(residuals(samples, start, best, constants));
  double damping = 0.01;
  for (int i = 0; i < 40; ++i) {
    const Generation next = improve(samples, start, best, constants, damping);
    const double error = square_of(residuals(samples, start, next, constants));
    damping *= error < least ? 0.5 : 4;
    if (error >= least) continue;
    least = error;
    best = next;
  }
  return best;
}

// Where a fit starts: round numbers that stand for any GPU, not the fitted ones.
Generation unfitted(const Generation& fitted) {
  Generation start = fitted;
  start.matmul_16 = 0.75;
  start.matmul_8 = 0.55;
  start.half_width = 100;
  start.attention_triton = 0.3;
  start.eager_bytes = 65;
  start.eager_llama_bytes = 250;
  start.fused_bytes = 40;
  start.fp8_bytes = 12;
  start.mxfp8_bytes = 15;
  start.head_bytes = 40;
  start.host_s = 3e-4;
  start.step_s = 0.01;
  start.exposed = 0.5;
  start.tensor_exposed = 0.5;
  start.network_share = 0.5;
  start.network_share_fsdp = 0.8;
  return start;
}

struct Held {
  const char* generation;
  size_t rows;
  std::vector<Constant> constants;
  double mean;  // of the halves that were held out
};

const std::vector<Constant> kPython = {
    &Generation::matmul_16,        &Generation::half_width,
    &Generation::attention_triton, &Generation::host_s,
    &Generation::step_s,           &Generation::exposed,
    &Generation::eager_bytes,      &Generation::head_bytes,
    &Generation::network_share,    &Generation::network_share_fsdp,
    &Generation::eager_llama_bytes};

std::vector<Constant> and_8_bit(std::vector<Constant> constants) {
  constants.insert(constants.end(), {&Generation::matmul_8, &Generation::fp8_bytes,
                                     &Generation::fused_bytes, &Generation::tensor_exposed});
  return constants;
}

const std::vector<Constant> kMegatron = {&Generation::matmul_8,      &Generation::half_width,
                                         &Generation::exposed,       &Generation::fp8_bytes,
                                         &Generation::mxfp8_bytes,   &Generation::fused_bytes,
                                         &Generation::tensor_exposed};

TEST_CASE("constants fitted to half of the published runs predict the other half", "[estimate]") {
  const PublishedRuns foundry = read_llm_foundry();
  const PublishedRuns titan = read_torchtitan();
  const PublishedRuns bridge = read_megatron_bridge();
  const PublishedRuns fms = read_fms_fsdp();
  const auto held = GENERATE(
      Held{"ampere", 75, kPython, 0.06}, Held{"hopper", 61, and_8_bit(kPython), 0.06},
      Held{"blackwell", 18, kMegatron, 0.06}, Held{"blackwell-ultra", 13, kMegatron, 0.08});
  std::vector<Sample> samples = samples_of({&foundry, &titan, &bridge, &fms}, held.generation);
  REQUIRE(samples.size() == held.rows);
  const Generation start = unfitted(*samples[0].question.hardware->gpu->generation);
  std::mt19937 random(7);
  double sum = 0;
  double worst = 0;
  size_t count = 0;
  for (int half = 0; half < 8; ++half) {
    std::ranges::shuffle(samples, random);
    const auto middle = samples.begin() + ptrdiff_t(samples.size() / 2);
    const Generation fitted = fit({samples.begin(), middle}, start, held.constants);
    for (auto sample = middle; sample != samples.end(); ++sample) {
      const double error = std::abs(std::exp(error_of(*sample, fitted)) - 1);
      sum += error;
      worst = std::max(worst, error);
      ++count;
    }
  }
  CAPTURE(held.generation, sum / double(count), worst);
  CHECK(sum / double(count) < held.mean);
  CHECK(worst < 0.3);
}

}  // namespace
}  // namespace gxp
