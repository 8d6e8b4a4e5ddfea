#include "kernels/elementwise.h"

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/largest.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/math/stochastic.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// One operation of kernels/math/elementwise.h, whose arrays have elements of types T.
template <class Math, class... T>
struct Elementwise {
  Math math;
  void* arrays[sizeof...(T)];
  // `largest`, of each array that is written, or null: sees what is.
  template <int N>
  __device__ __forceinline__ void run(size_t at, LargestWritten* largest = nullptr) const {
    run<N>(at, largest, std::index_sequence_for<T...>());
  }
  template <int N, size_t... i>
  __device__ __forceinline__ void run(size_t at, LargestWritten* largest,
                                      std::index_sequence<i...>) const {
    Floats<N> values[] = {read<N, i, T>(at)...};
    for (int j = 0; j < N; ++j) {
      float element[] = {values[i].at[j]...};
      math(element);
      ((values[i].at[j] = element[i]), ...);
    }
    (write<N, i, T>(at, largest, values[i]), ...);
  }
  template <int N, size_t i, class Element>
  __device__ __forceinline__ Floats<N> read(size_t at) const {
    if constexpr (i < Math::kForm.first_read)
      return {};
    else
      return load<N>(static_cast<const Element*>(arrays[i]) + at);
  }
  template <int N, size_t i, class Element>
  __device__ __forceinline__ void write(size_t at, LargestWritten* largest,
                                        const Floats<N>& values) const {
    if constexpr (i < Math::kForm.written) {
      if (largest != nullptr) largest[i].see(values);
      store(static_cast<Element*>(arrays[i]) + at, values);
    }
  }
};

using Calls = std::span<const ElementwiseCall>;

template <class Math, class... T>
Elementwise<Math, T...> body_of(const ElementwiseCall& call) {
  Elementwise<Math, T...> body{std::get<Math>(call.math), {}};
  for (size_t i = 0; i < sizeof...(T); ++i)
    body.arrays[i] = i < Math::kForm.written
                         ? array_of(call.written[i]).data
                         : const_cast<void*>(array_of(call.read[i - Math::kForm.written]).data);
  return body;
}

template <class Math, class... T, size_t... i>
bool lies_in_fours(const Elementwise<Math, T...>& body, std::index_sequence<i...>) {
  return lie_in_fours(static_cast<const T*>(body.arrays[i])...);
}

bool finds_largest(const ElementwiseCall& call) {
  return std::ranges::any_of(call.written,
                             [](const Tensor& out) { return out.largest != nullptr; });
}

// Of an operation on bf16 whose outputs products multiply.
template <class Math, class... T>
cudaError_t launch_with_largest(const GpuStream& stream, const ElementwiseCall& call) {
  if constexpr (Math::kForm.types == ElementTypes::kOne && (std::is_same_v<T, Bf16> && ...)) {
    const Elementwise<Math, T...> body = body_of<Math, T...>(call);
    LargestPointers<Math::kForm.written> pointers;
    for (size_t i = 0; i < Math::kForm.written; ++i) pointers.at[i] = call.written[i].largest;
    const bool in_fours = lies_in_fours(body, std::index_sequence_for<T...>());
    return for_each_with_largest<Bf16>(stream, call.count(), in_fours, body, pointers);
  } else {
    return cudaErrorInvalidValue;
  }
}

// With the arrays' types T known. Optimizers alone have many calls at a time.
template <class Math, class... T>
cudaError_t launch(const GpuStream& stream, Calls calls) {
  using Body = Elementwise<Math, T...>;
  constexpr std::index_sequence_for<T...> kArrays{};
  if (calls.size() == 1) {
    if (finds_largest(calls[0])) return launch_with_largest<Math, T...>(stream, calls[0]);
    const Body body = body_of<Math, T...>(calls[0]);
    return for_each(stream, calls[0].count(), lies_in_fours(body, kArrays), body);
  }
  if constexpr (Math::kForm.types == ElementTypes::kGradient) {
    for (size_t first = 0; first < calls.size(); first += Bodies<Body>::kMost) {
      Bodies<Body> bodies{};
      bool in_fours = true;
      for (const ElementwiseCall& call :
           calls.subspan(first, std::min(Bodies<Body>::kMost, calls.size() - first))) {
        const Body body = body_of<Math, T...>(call);
        in_fours = in_fours && lies_in_fours(body, kArrays);
        bodies.add(body, call.count());
      }
      if (const cudaError_t result = for_each_of(stream, in_fours, bodies); result != cudaSuccess)
        return result;
    }
  } else {
    for (const ElementwiseCall& call : calls)
      if (const cudaError_t result = launch<Math, T...>(stream, {&call, 1}); result != cudaSuccess)
        return result;
  }
  return cudaSuccess;
}

DType type_of(const ElementwiseCall& call, size_t array) {
  const size_t written = form_of(call.math).written;
  return array < written ? call.written[array].dtype : call.read[array - written].dtype;
}

// With the types T of the first arrays known.
template <class Math, class... T>
cudaError_t launch_typed(const GpuStream& stream, Calls calls) {
  constexpr ElementwiseForm kForm = Math::kForm;
  constexpr size_t kKnown = sizeof...(T);
  if constexpr (kKnown == kForm.arrays) {
    return launch<Math, T...>(stream, calls);
  } else if constexpr (kForm.types == ElementTypes::kOne && kKnown > 0) {
    using First = std::tuple_element_t<0, std::tuple<T...>>;
    return launch_typed<Math, T..., First>(stream, calls);
  } else if constexpr (kForm.types == ElementTypes::kGradient && kKnown + 1 < kForm.arrays) {
    return launch_typed<Math, T..., float>(stream, calls);
  } else {
    return with_element(type_of(calls[0], kKnown), [&](auto element) {
      return launch_typed<Math, T..., decltype(element)>(stream, calls);
    });
  }
}

bool is_of_kind(const ElementwiseCall& call, const ElementwiseCall& other) {
  bool same = call.math.index() == other.math.index();
  for (size_t i = 0; same && i < form_of(call.math).arrays; ++i)
    same = type_of(call, i) == type_of(other, i);
  return same;
}

template <class To, class From>
struct Convert {
  To* out;
  const From* x;
  template <int N>
  __device__ void run(size_t i, LargestWritten* largest = nullptr) const {
    const Floats<N> values = load<N>(x + i);
    if (largest != nullptr) largest->see(values);
    store(out + i, values);
  }
};

template <class T, class Row>
struct AddRow {
  T* out;
  const Row* added;
  size_t columns;
  template <int N>
  __device__ void run(size_t row, size_t i) const {
    T* const to = out + row * columns + i;
    Floats<N> sum = load<N>(to);
    const Floats<N> terms = load<N>(added + i);
    for (int j = 0; j < N; ++j) sum.at[j] += terms.at[j];
    store(to, sum);
  }
};

struct RoundStochastically {
  Bf16* out;
  const float* x;
  RandomBits bits;
  template <int N>
  __device__ void run(size_t i) const {
    const Floats<N> values = load<N>(x + i);
    Group<N, Bf16> rounded;
    for (int j = 0; j < N; ++j) {
      const size_t element = bits.first + i + size_t(j);
      const RandomBlock block = random_block(bits.key, element / kRandomBlock);
      const uint32_t random = random_word(uint32_t(element % kRandomBlock), block);
      rounded.at[j].bits = uint16_t(round_to_bf16(bits_as<uint32_t>(values.at[j]), random));
    }
    store(out + i, rounded);
  }
};

template <class T>
struct DropOut {
  T* out;
  const T* x;
  RandomBits bits;
  uint32_t lowest_kept;
  float factor;
  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> values = load<N>(x + i);
    for (int j = 0; j < N; ++j) {
      const size_t element = bits.first + i + size_t(j);
      const RandomBlock block = random_block(bits.key, element / kRandomBlock);
      values.at[j] =
          gxp::drop_out(values.at[j], uint32_t(element % kRandomBlock), block, lowest_kept, factor);
    }
    store(out + i, values);
  }
};

struct Scale {
  float* out;
  const float* x;
  const float* by_row;
  const float* by_column;
  size_t columns;
  template <int N>
  __device__ void run(size_t row, size_t i) const {
    Floats<N> values = load<N>(x + row * columns + i);
    const Floats<N> factors = load<N>(by_column + i);
    for (int j = 0; j < N; ++j) values.at[j] *= factors.at[j] * by_row[row];
    store(out + row * columns + i, values);
  }
};

}  // namespace

void CudaElementwise::apply(const ElementwiseCall& call) { apply_all({&call, 1}); }

void CudaElementwise::apply_all(Calls calls) {
  if (calls.empty()) return;
  for (const ElementwiseCall& call : calls) GXP_ASSERT(is_of_kind(call, calls[0]));
  const cudaError_t result = std::visit(
      [&]<class Math>(const Math& /*first*/) { return launch_typed<Math>(queue_.stream(), calls); },
      calls[0].math);
  if (result != cudaSuccess)
    check_cuda(result, std::string("launch ") + form_of(calls[0].math).name);
}

void CudaElementwise::convert(Tensor out, ConstTensor x) {
  GXP_ASSERT(out.count() == x.count());
  const cudaError_t result = with_element(out.dtype, [&](auto to) {
    return with_element(x.dtype, [&](auto from) {
      const Convert<decltype(to), decltype(from)> body{elements<decltype(to)>(array_of(out)),
                                                       elements<decltype(from)>(array_of(x))};
      if constexpr (std::is_same_v<decltype(to), Bf16> && std::is_same_v<decltype(from), float>)
        if (out.largest != nullptr)
          return for_each_with_largest<Bf16>(queue_.stream(), x.count(),
                                             lie_in_fours(body.out, body.x), body,
                                             LargestPointers<1>{{out.largest}});
      return for_each(queue_.stream(), x.count(), lie_in_fours(body.out, body.x), body);
    });
  });
  check_cuda(result, "launch convert");
}

void CudaElementwise::round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) {
  GXP_ASSERT(out.dtype == DType::kBF16 && out.count() == x.count());
  const RoundStochastically body{elements<Bf16>(array_of(out)), cuda_vector<float>(x, x.count()),
                                 bits};
  check_cuda(for_each(queue_.stream(), x.count(), lie_in_fours(body.out, body.x), body),
             "launch round_stochastically");
}

void CudaElementwise::drop_out(Tensor out, ConstTensor x, const Dropout& dropout) {
  GXP_ASSERT(out.dtype == x.dtype && out.count() == x.count());
  const cudaError_t result = with_element(x.dtype, [&](auto type) {
    using T = decltype(type);
    const DropOut<T> body{elements<T>(array_of(out)), elements<T>(array_of(x)), dropout.bits,
                          dropout.lowest_kept(), dropout.factor()};
    return for_each(queue_.stream(), x.count(), lie_in_fours(body.out, body.x), body);
  });
  check_cuda(result, "launch drop_out");
}

void CudaElementwise::scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                                             ConstTensor columns) {
  const size_t height = x.shape.rows();
  const size_t width = x.shape.columns();
  const Scale body{cuda_vector<float>(out, height * width), cuda_vector<float>(x, height * width),
                   cuda_vector<float>(rows, height), cuda_vector<float>(columns, width), width};
  const bool in_fours = width % 4 == 0 && lie_in_fours(body.out, body.x, body.by_column);
  check_cuda(for_each_row(queue_.stream(), height, width, in_fours, body),
             "launch scale_rows_and_columns");
}

void add_row(const CudaQueue& queue, CudaArray out, ConstCudaArray row, size_t rows,
             size_t columns) {
  const cudaError_t result = with_element(out.type, [&](auto to) {
    return with_element(row.type, [&](auto from) {
      const AddRow<decltype(to), decltype(from)> body{elements<decltype(to)>(out),
                                                      elements<decltype(from)>(row), columns};
      const bool in_fours = columns % 4 == 0 && lie_in_fours(body.out, body.added);
      return for_each_row(queue.stream(), rows, columns, in_fours, body);
    });
  });
  check_cuda(result, "launch add_row");
}

}  // namespace gxp
