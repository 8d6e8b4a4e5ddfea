#include "lib/model/initialise.h"

#include <cmath>
#include <numbers>
#include <span>

#include "lib/base/hash.h"

namespace gxp {
namespace {

// Two independent standard normal values per counter (Box & Muller, 1958).
void normal_pair(uint64_t key, uint64_t counter, float deviation, float* out, size_t count) {
  const uint64_t bits = mix64(key + counter * 0x9e3779b97f4a7c15u);
  const float u = (float(bits >> 40) + 0.5f) * 0x1p-24f;  // in (0, 1)
  const float v = float((bits >> 8) & 0xffffffu) * 0x1p-24f;
  const float radius = deviation * std::sqrt(-2.0f * std::log(u));
  const float angle = 2.0f * std::numbers::pi_v<float> * v;
  out[0] = radius * std::cos(angle);
  if (count > 1) out[1] = radius * std::sin(angle);
}

// `first`: the index of out[0] in the tensor.
void fill_normal(std::span<float> out, size_t first, uint64_t key, float deviation,
                 ThreadPool& pool) {
  pool.parallel_for(out.size(), 2, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += 2)
      normal_pair(key, (first + i) / 2, deviation, &out[i], end - i);
  });
}

// Between -limit and limit.
void fill_uniform(std::span<float> out, size_t first, uint64_t key, float limit, ThreadPool& pool) {
  pool.parallel_for(out.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint64_t bits = mix64(key + (first + i) * 0x9e3779b97f4a7c15u);
      out[i] = limit * (float(bits >> 40) * 0x1p-23f - 1.0f);
    }
  });
}

}  // namespace

void initialise(const Tensor& part, size_t begin, const TensorSpec& spec,
                const InitialisationKey& key, ThreadPool& pool) {
  GXP_ASSERT(begin % 2 == 0);
  const std::span<float> out(part.data<float>(), part.count());
  const uint64_t mixed = mix64(key.seed) ^ hash64(std::as_bytes(std::span(spec.name)));
  switch (spec.initial) {
    case Initial::kNormal:
      fill_normal(out, begin, mixed, kInitialDeviation, pool);
      break;
    case Initial::kResidualNormal:
      fill_normal(out, begin, mixed, kInitialDeviation / std::sqrt(2.0f * float(key.layers)), pool);
      break;
    case Initial::kUniform:
      fill_uniform(out, begin, mixed, 1 / std::sqrt(float(spec.shape[1])), pool);
      break;
    case Initial::kZeros:
      std::fill(out.begin(), out.end(), 0.0f);
      break;
    case Initial::kOnes:
      std::fill(out.begin(), out.end(), 1.0f);
      break;
  }
}

}  // namespace gxp
