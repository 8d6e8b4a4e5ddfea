#include "kernels/cuda/elementwise_launch.h"

#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/gelu.h"
#include "kernels/math/silu.h"
#include "kernels/math/stochastic.h"

namespace gxp {
namespace {

template <class T>
struct GeluForward {
  T* out;
  const T* x;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> at = load<N>(x + i);
    for (int j = 0; j < N; ++j) at.at[j] = gelu(at.at[j]);
    store(out + i, at);
  }
};

template <class T>
struct GeluBackward {
  T* dx;
  T* activated;
  const T* dout;
  const T* x;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> value = load<N>(x + i);
    Floats<N> gradient = load<N>(dout + i);
    for (int j = 0; j < N; ++j) {
      const auto at = gelu_and_slope(value.at[j]);
      gradient.at[j] *= at.slope;
      value.at[j] = at.value;
    }
    store(dx + i, gradient);
    store(activated + i, value);
  }
};

template <class T>
struct SwigluForward {
  T* out;
  const T* gate;
  const T* up;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> at = load<N>(gate + i);
    const Floats<N> factor = load<N>(up + i);
    for (int j = 0; j < N; ++j) at.at[j] = silu(at.at[j]) * factor.at[j];
    store(out + i, at);
  }
};

template <class T>
struct SwigluBackward {
  T* dout;
  T* gate;
  T* up;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> upstream = load<N>(dout + i);
    Floats<N> gates = load<N>(gate + i);
    Floats<N> factors = load<N>(up + i);
    for (int j = 0; j < N; ++j) {
      const auto at = silu_and_slope(gates.at[j]);
      const float gradient = upstream.at[j];
      upstream.at[j] = at.value * factors.at[j];
      gates.at[j] = gradient * factors.at[j] * at.slope;
      factors.at[j] = gradient * at.value;
    }
    store(dout + i, upstream);
    store(gate + i, gates);
    store(up + i, factors);
  }
};

template <class To, class From>
struct Convert {
  To* out;
  const From* x;
  template <int N>
  __device__ void run(size_t i) const {
    store(out + i, load<N>(x + i));
  }
};

template <class To, class A, class B>
struct Sum {
  To* out;
  const A* a;
  const B* b;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> sum = load<N>(a + i);
    const Floats<N> other = load<N>(b + i);
    for (int j = 0; j < N; ++j) sum.at[j] += other.at[j];
    store(out + i, sum);
  }
};

template <class T, class Row>
struct AddRow {
  T* out;
  const Row* row;
  size_t columns;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> sum = load<N>(out + i);
    for (int j = 0; j < N; ++j) sum.at[j] += load<1>(row + (i + j) % columns).at[0];
    store(out + i, sum);
  }
};

struct RoundStochastically {
  Bf16* out;
  const float* x;
  RandomBits bits;
  template <int N>
  __device__ void run(size_t i) const {
    for (size_t j = i; j < i + N; ++j) {
      const size_t element = bits.first + j;
      const RandomBlock block = random_block(bits.key, element / kRandomBlock);
      const uint32_t random = random_word(uint32_t(element % kRandomBlock), block);
      out[j].bits = uint16_t(round_to_bf16(bits_as<uint32_t>(x[j]), random));
    }
  }
};

struct Fill {
  float* out;
  float value;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> all;
    for (int j = 0; j < N; ++j) all.at[j] = value;
    store(out + i, all);
  }
};

}  // namespace

cudaError_t launch_gelu_forward(cudaStream_t stream, size_t count, CudaArray out,
                                ConstCudaArray x) {
  return with_element(x.type, [&](auto element) {
    using T = decltype(element);
    const GeluForward<T> body{elements<T>(out), elements<T>(x)};
    return for_each(stream, count, lie_in_fours(body.out, body.x), body);
  });
}

cudaError_t launch_gelu_backward(cudaStream_t stream, size_t count, CudaArray dx,
                                 CudaArray activated, ConstCudaArray dout, ConstCudaArray x) {
  return with_element(x.type, [&](auto element) {
    using T = decltype(element);
    const GeluBackward<T> body{elements<T>(dx), elements<T>(activated), elements<T>(dout),
                               elements<T>(x)};
    const bool in_fours = lie_in_fours(body.dx, body.activated, body.dout, body.x);
    return for_each(stream, count, in_fours, body);
  });
}

cudaError_t launch_swiglu_forward(cudaStream_t stream, size_t count, CudaArray out,
                                  ConstCudaArray gate, ConstCudaArray up) {
  return with_element(out.type, [&](auto element) {
    using T = decltype(element);
    const SwigluForward<T> body{elements<T>(out), elements<T>(gate), elements<T>(up)};
    const bool in_fours = lie_in_fours(body.out, body.gate, body.up);
    return for_each(stream, count, in_fours, body);
  });
}

cudaError_t launch_swiglu_backward(cudaStream_t stream, size_t count, CudaArray dout,
                                   CudaArray gate, CudaArray up) {
  return with_element(dout.type, [&](auto element) {
    using T = decltype(element);
    const SwigluBackward<T> body{elements<T>(dout), elements<T>(gate), elements<T>(up)};
    const bool in_fours = lie_in_fours(body.dout, body.gate, body.up);
    return for_each(stream, count, in_fours, body);
  });
}

cudaError_t launch_convert(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray x) {
  return with_element(out.type, [&](auto to) {
    return with_element(x.type, [&](auto from) {
      const Convert<decltype(to), decltype(from)> body{elements<decltype(to)>(out),
                                                       elements<decltype(from)>(x)};
      return for_each(stream, count, lie_in_fours(body.out, body.x), body);
    });
  });
}

cudaError_t launch_add_row(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray row,
                           size_t columns) {
  return with_element(out.type, [&](auto to) {
    return with_element(row.type, [&](auto from) {
      const AddRow<decltype(to), decltype(from)> body{elements<decltype(to)>(out),
                                                      elements<decltype(from)>(row), columns};
      return for_each(stream, count, lie_in_fours(body.out), body);
    });
  });
}

cudaError_t launch_add(cudaStream_t stream, size_t count, CudaArray out, ConstCudaArray a,
                       ConstCudaArray b) {
  return with_element(out.type, [&](auto to) {
    return with_element(a.type, [&](auto left) {
      return with_element(b.type, [&](auto right) {
        const Sum<decltype(to), decltype(left), decltype(right)> body{
            elements<decltype(to)>(out), elements<decltype(left)>(a), elements<decltype(right)>(b)};
        const bool in_fours = lie_in_fours(body.out, body.a, body.b);
        return for_each(stream, count, in_fours, body);
      });
    });
  });
}

cudaError_t launch_round_stochastically(cudaStream_t stream, size_t count, void* out,
                                        const float* x, const RandomBits& bits) {
  return for_each(stream, count, true, RoundStochastically{static_cast<Bf16*>(out), x, bits});
}

cudaError_t launch_fill(cudaStream_t stream, size_t count, float* out, float value) {
  return for_each(stream, count, lie_in_fours(out), Fill{out, value});
}

}  // namespace gxp
