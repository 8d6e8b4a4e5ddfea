// The backends a test runs on, arrays for it, and how close is close.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/ops.h"
#include "tests/catch.h"
#include "tests/kernels/oracle.h"

namespace gxp {

// Every instruction set that this CPU has.
inline std::vector<Isa> isas_here() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (cpu_has(isa)) isas.push_back(isa);
  }
  return isas;
}

struct TestBackend {
  explicit TestBackend(Isa isa, int threads = 1)
      : pool(threads), owned(make_cpu_ops(pool, std::string(to_string(isa)))) {}
  Ops* operator->() { return owned.get(); }
  ThreadPool pool;
  std::unique_ptr<Ops> owned;
};

// Each of isas_here() with 1, 2 and 3 threads.
struct BackendKind {
  Isa isa;
  int threads;
};
inline std::vector<BackendKind> backend_kinds() {
  std::vector<BackendKind> kinds;
  for (const Isa isa : isas_here()) {
    for (const int threads : {1, 2, 3}) kinds.push_back({isa, threads});
  }
  return kinds;
}

using Floats = std::vector<float>;
using Indices = std::vector<int32_t>;

inline Floats random_floats(size_t count, unsigned seed, float range = 1.0f) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-range, range);
  Floats x(count);
  for (float& value : x) value = uniform(random);
  return x;
}

inline Indices random_indices(size_t count, unsigned seed, size_t below) {
  std::mt19937 random(seed);
  Indices x(count);
  for (int32_t& value : x) value = int32_t(random() % below);
  return x;
}

inline Tensor tensor_of(Floats& x, const Shape& shape) {
  return {memory_of(x), DType::kF32, shape};
}
inline ConstTensor tensor_of(const Floats& x, const Shape& shape) {
  return {memory_of(x), DType::kF32, shape};
}
inline ConstTensor tensor_of(const Indices& x, const Shape& shape) {
  return {memory_of(x), DType::kI32, shape};
}

// The largest |actual - expected|, in float epsilons of the largest |expected| (at least `floor`).
inline double distance_in_eps(const Floats& actual, const oracle::Values& expected,
                              double floor = 0) {
  REQUIRE(actual.size() == expected.size());
  double scale = floor;
  double distance = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    const double difference = std::abs(double(actual[i]) - expected[i]);
    distance = std::isnan(difference) ? INFINITY : std::max(distance, difference);
  }
  if (distance == 0) return 0;
  return distance / scale / double(std::numeric_limits<float>::epsilon());
}

// What `terms` rounded additions of values of one size may cost in epsilons, if their errors are
// independent (a random walk), with a margin of four standard deviations; and `other` roundings.
inline double roundings(size_t terms, double other) {
  return other + 4 * 0.5 * std::sqrt(double(terms));
}

}  // namespace gxp
