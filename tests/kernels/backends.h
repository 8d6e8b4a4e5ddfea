// The backends a test runs on, arrays for it, and how close is close.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/gemm/amx.h"
#include "kernels/cpu/gemm/gemm_choice.h"
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

// The kernels that multiply bf16 pairs and can be run here; amx-emulated always can.
inline std::vector<std::string> pair_kernels_here() {
  std::vector<std::string> names = {"amx-emulated"};
#if defined(__x86_64__)
  if (cpu_has(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16")) names.push_back("avx512-bf16");
#endif
  if (amx_support()) names.push_back("amx");
  return names;
}

// A way to multiply matrices of a type.
struct Product {
  Isa isa;
  std::string bf16;  // kernels/cpu/gemm/gemm_choice.h
  DType dtype;
  [[nodiscard]] bool in_pairs() const { return bf16 != to_string(isa); }
  [[nodiscard]] GemmKernels kernels() const { return choose_gemm_kernels(isa, bf16); }
};
// Every kernel that can be run here, with each type that has a path of its own in it.
inline std::vector<Product> products_here() {
  std::vector<Product> products;
  for (const Isa isa : isas_here()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
      products.push_back({isa, std::string(to_string(isa)), dtype});
  }
  for (const std::string& name : pair_kernels_here())
    products.push_back({choose_isa(), name, DType::kBF16});
  return products;
}

// Operations of a kind, over tensors in the host's memory, and what they need.
struct TestOps {
  std::array<std::shared_ptr<void>, 2> owned;  // the second is freed first, both after `ops`
  std::unique_ptr<Ops> ops;
};

// What families of tests are run on: defined once by each test binary.
struct BackendKind {
  std::string name;  // "avx512, 2 threads"
  int threads;
  std::function<TestOps()> make;
  // Of a product's sum of 32 terms in 8 bits, relative to the largest: tensor cores add them in fewer
  // bits than f32 has, also where fast sums are off.
  double float8_error = 0;
};
std::vector<BackendKind> backend_kinds();
// Those, and more that differ in attention of halves alone.
std::vector<BackendKind> attention_kinds();

// The kinds of one thread: a device each.
inline std::vector<BackendKind> of_one_thread(std::vector<BackendKind> kinds) {
  std::erase_if(kinds, [](const BackendKind& kind) { return kind.threads > 1; });
  return kinds;
}
inline std::vector<BackendKind> device_kinds() { return of_one_thread(backend_kinds()); }

BackendKind cpu_kind(Isa isa, int threads);

class TestBackend {
 public:
  explicit TestBackend(const BackendKind& kind) : ops_(kind.make()) {}
  Ops* operator->() { return ops_.ops.get(); }
  Ops& operator*() { return *ops_.ops; }

 private:
  TestOps ops_;
};

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

inline oracle::Values plus(const Floats& before, oracle::Values added) {
  for (size_t i = 0; i < added.size(); ++i) added[i] += before[i];
  return added;
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
