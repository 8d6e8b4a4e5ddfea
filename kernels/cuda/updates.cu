#include "kernels/cuda/updates_launch.h"

#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/typed.cuh"

namespace gxp {
namespace {

struct SquareRoot {
  __device__ float operator()(float x) const { return sqrtf(x); }
};

template <class T>
struct AdamWElements {
  CudaAdamWArrays arrays;
  AdamWFactors factors;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> weights = load<N>(arrays.weights + i);
    Floats<N> first = load<N>(arrays.first + i);
    Floats<N> second = load<N>(arrays.second + i);
    const Floats<N> gradients = load<N>(static_cast<const T*>(arrays.gradients.data) + i);
    for (int j = 0; j < N; ++j) {
      const AdamWElement<float> after =
          adamw_update(AdamWElement<float>{weights.at[j], first.at[j], second.at[j]},
                       gradients.at[j], factors, SquareRoot());
      weights.at[j] = after.weight;
      first.at[j] = after.first;
      second.at[j] = after.second;
    }
    store(arrays.weights + i, weights);
    store(arrays.first + i, first);
    store(arrays.second + i, second);
  }
};

template <class T>
struct SgdElements {
  float* weights;
  float* momentum;  // or null
  const T* gradients;
  SgdFactors factors;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> weight = load<N>(weights + i);
    const Floats<N> gradient = load<N>(gradients + i);
    Floats<N> kept{};
    if (momentum != nullptr) kept = load<N>(momentum + i);
    for (int j = 0; j < N; ++j) {
      const float g =
          gradient.at[j] * factors.momentum.gradient_scale + weight.at[j] * factors.decay;
      const auto after = momentum_update(kept.at[j], g, factors.momentum);
      weight.at[j] -= factors.lr * (momentum != nullptr ? after.direction : g);
      kept.at[j] = after.momentum;
    }
    store(weights + i, weight);
    if (momentum != nullptr) store(momentum + i, kept);
  }
};

struct SignedLike {
  __device__ float operator()(float x, float v) const {
    return v > 0.0f ? x : v < 0.0f ? -x : v;  // v is 0 or NaN: itself
  }
};

template <class T>
struct LionElements {
  float* weights;
  float* momentum;
  const T* gradients;
  LionFactors factors;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> weight = load<N>(weights + i);
    Floats<N> kept = load<N>(momentum + i);
    const Floats<N> gradient = load<N>(gradients + i);
    for (int j = 0; j < N; ++j) {
      const auto after = lion_update(LionElement<float>{weight.at[j], kept.at[j]}, gradient.at[j],
                                     factors, SignedLike());
      weight.at[j] = after.weight;
      kept.at[j] = after.momentum;
    }
    store(weights + i, weight);
    store(momentum + i, kept);
  }
};

template <class T>
struct MomentumElements {
  float* direction;
  float* momentum;
  const T* gradients;
  MomentumFactors factors;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> kept = load<N>(momentum + i);
    Floats<N> along = load<N>(gradients + i);
    for (int j = 0; j < N; ++j) {
      const auto after = momentum_update(kept.at[j], along.at[j] * factors.gradient_scale, factors);
      kept.at[j] = after.momentum;
      along.at[j] = after.direction;
    }
    store(direction + i, along);
    store(momentum + i, kept);  // last: it may be the direction
  }
};

struct Scale {
  float* out;
  const float* x;
  const float* by_row;
  const float* by_column;
  size_t columns;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> at = load<N>(x + i);
    for (int j = 0; j < N; ++j)
      at.at[j] *= by_column[(i + size_t(j)) % columns] * by_row[(i + size_t(j)) / columns];
    store(out + i, at);
  }
};

}  // namespace

cudaError_t launch_adamw(cudaStream_t stream, size_t count, const CudaAdamWArrays& arrays,
                         const AdamWFactors& factors) {
  return with_element(arrays.gradients.type, [&](auto element) {
    using T = decltype(element);
    const bool in_fours =
        lie_in_fours(arrays.weights, arrays.first, arrays.second, elements<T>(arrays.gradients));
    return for_each(stream, count, in_fours, AdamWElements<T>{arrays, factors});
  });
}

cudaError_t launch_sgd(cudaStream_t stream, size_t count, float* weights, float* momentum,
                       ConstCudaArray gradients, const SgdFactors& factors) {
  return with_element(gradients.type, [&](auto element) {
    using T = decltype(element);
    const SgdElements<T> body{weights, momentum, elements<T>(gradients), factors};
    const bool in_fours = lie_in_fours(weights, momentum, body.gradients);
    return for_each(stream, count, in_fours, body);
  });
}

cudaError_t launch_lion(cudaStream_t stream, size_t count, float* weights, float* momentum,
                        ConstCudaArray gradients, const LionFactors& factors) {
  return with_element(gradients.type, [&](auto element) {
    using T = decltype(element);
    const LionElements<T> body{weights, momentum, elements<T>(gradients), factors};
    const bool in_fours = lie_in_fours(weights, momentum, body.gradients);
    return for_each(stream, count, in_fours, body);
  });
}

cudaError_t launch_momentum(cudaStream_t stream, size_t count, float* direction, float* momentum,
                            ConstCudaArray gradients, const MomentumFactors& factors) {
  return with_element(gradients.type, [&](auto element) {
    using T = decltype(element);
    const MomentumElements<T> body{direction, momentum, elements<T>(gradients), factors};
    const bool in_fours = lie_in_fours(direction, momentum, body.gradients);
    return for_each(stream, count, in_fours, body);
  });
}

cudaError_t launch_scale(cudaStream_t stream, size_t rows, size_t columns, float* out,
                         const float* x, const float* by_row, const float* by_column) {
  return for_each(stream, rows * columns, lie_in_fours(out, x),
                  Scale{out, x, by_row, by_column, columns});
}

}  // namespace gxp
