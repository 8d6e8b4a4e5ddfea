#include "kernels/cuda/elementwise_launch.h"

#include "kernels/cuda/for_each.cuh"
#include "kernels/math/gelu.h"

namespace gxp {
namespace {

struct GeluForward {
  float* out;
  const float* x;
  __device__ void operator()(size_t i) const { out[i] = gelu(x[i]); }
};

struct GeluBackward {
  float* dx;
  float* activated;
  const float* dout;
  const float* x;
  __device__ void operator()(size_t i) const {
    const auto [value, slope] = gelu_and_slope(x[i]);
    dx[i] = dout[i] * slope;
    activated[i] = value;
  }
};

struct SquareRoot {
  __device__ float operator()(float x) const { return sqrtf(x); }
};

struct AdamWElements {
  CudaAdamWArrays arrays;
  AdamWFactors factors;
  __device__ void operator()(size_t i) const {
    const AdamWElement<float> old = {arrays.weights[i], arrays.first[i], arrays.second[i]};
    const auto updated = adamw_update(old, arrays.gradients[i], factors, SquareRoot{});
    arrays.weights[i] = updated.weight;
    arrays.first[i] = updated.first;
    arrays.second[i] = updated.second;
  }
};

struct Fill {
  float* out;
  float value;
  __device__ void operator()(size_t i) const { out[i] = value; }
};

}  // namespace

cudaError_t launch_gelu_forward(cudaStream_t stream, size_t count, float* out, const float* x) {
  return for_each(stream, count, GeluForward{out, x});
}

cudaError_t launch_gelu_backward(cudaStream_t stream, size_t count, float* dx, float* activated,
                                 const float* dout, const float* x) {
  return for_each(stream, count, GeluBackward{dx, activated, dout, x});
}

cudaError_t launch_adamw(cudaStream_t stream, size_t count, const CudaAdamWArrays& arrays,
                         const AdamWFactors& factors) {
  return for_each(stream, count, AdamWElements{arrays, factors});
}

cudaError_t launch_fill(cudaStream_t stream, size_t count, float* out, float value) {
  return for_each(stream, count, Fill{out, value});
}

}  // namespace gxp
