// AdamW with moments of fewer bits. Of bf16, four elements a thread; of 8 bits, a warp has a block
// of kStateBlock elements, and a lane of it every 32nd.
#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/for_each.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/typed.cuh"
#include "kernels/elementwise.h"
#include "kernels/math/dynamic_map.h"
#include "kernels/math/stochastic.h"
#include "lib/base/state_block.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

template <class G>
struct HalfMoments {
  AdamWUpdate math;
  float* weights;
  Bf16 *first, *second;
  const G* gradients;
  RandomBits first_bits, second_bits;

  template <int N>
  __device__ void run(size_t i) const {
    Floats<N> values[] = {load<N>(weights + i), load<N>(first + i), load<N>(second + i),
                          load<N>(gradients + i)};
    for (int j = 0; j < N; ++j) {
      float element[] = {values[0].at[j], values[1].at[j], values[2].at[j], values[3].at[j]};
      math(element);
      for (int k = 0; k < 3; ++k) values[k].at[j] = element[k];
    }
    store(weights + i, values[0]);
    store(first + i, rounded(values[1], first_bits, i));
    store(second + i, rounded(values[2], second_bits, i));
  }

  template <int N>
  __device__ static Group<N, Bf16> rounded(const Floats<N>& values, const RandomBits& bits,
                                           size_t i) {
    Group<N, Bf16> group;
    RandomBlock block{};
    for (int j = 0; j < N; ++j) {
      const size_t element = bits.first + i + size_t(j);
      if (j == 0 || element % kRandomBlock == 0)
        block = random_block(bits.key, element / kRandomBlock);
      const uint32_t random = random_word(uint32_t(element % kRandomBlock), block);
      group.at[j].bits = uint16_t(round_to_bf16(bits_as<uint32_t>(values.at[j]), random));
    }
    return group;
  }
};

template <class G>
struct CodedMoments {
  AdamWUpdate math;
  float* weights;
  uint8_t *first, *second;
  float *first_scales, *second_scales;
  const G* gradients;
};

struct Maps {
  DynamicMap first, second;
};
__device__ const Maps kMaps = {make_dynamic_map(true), make_dynamic_map(false)};

constexpr int kOfALane = int(kStateBlock) / kWarpLanes;

// One block, by a warp. Lanes beyond the range's end work on zeros.
template <class G>
__device__ void update_block(const CodedMoments<G>& body, size_t block, size_t count,
                             const Maps& maps) {
  const size_t begin = block * kStateBlock + threadIdx.x % kWarpLanes;
  const float first_scale = body.first_scales[block];
  const float second_scale = body.second_scales[block];
  float first[kOfALane], second[kOfALane];
  float most_first = 0, most_second = 0;
#pragma unroll
  for (int k = 0; k < kOfALane; ++k) {
    const size_t i = begin + size_t(k) * kWarpLanes;
    first[k] = second[k] = 0;
    if (i >= count) continue;
    float element[] = {body.weights[i], maps.first.values[body.first[i]] * first_scale,
                       maps.second.values[body.second[i]] * second_scale,
                       to_float(body.gradients[i])};
    body.math(element);
    body.weights[i] = element[0];
    first[k] = element[1];
    second[k] = element[2];
    most_first = Max()(fabsf(first[k]), most_first);
    most_second = Max()(second[k], most_second);
  }
  most_first = reduce_warp(most_first, Max());
  most_second = reduce_warp(most_second, Max());
  const float inverse_first = inverse_scale(most_first);
  const float inverse_second = inverse_scale(most_second);
  if (threadIdx.x % kWarpLanes == 0) {
    body.first_scales[block] = most_first;
    body.second_scales[block] = most_second;
  }
#pragma unroll
  for (int k = 0; k < kOfALane; ++k) {
    const size_t i = begin + size_t(k) * kWarpLanes;
    if (i >= count) continue;
    body.first[i] = nearest_code(first[k] * inverse_first, maps.first);
    body.second[i] = second_moment_code(second[k], inverse_second, maps.second);
  }
}

// The maps are in shared memory, since lanes look up what they like.
template <class G>
__global__ void coded_moments_kernel(const __grid_constant__ Bodies<CodedMoments<G>> all) {
  using All = Bodies<CodedMoments<G>>;
  static_assert(All::kChunk % kStateBlock == 0 && sizeof(Maps) % sizeof(uint4) == 0);
  __shared__ Maps maps;
  for (size_t i = threadIdx.x; i < sizeof(Maps) / sizeof(uint4); i += blockDim.x)
    reinterpret_cast<uint4*>(&maps)[i] = reinterpret_cast<const uint4*>(&kMaps)[i];
  __syncthreads();
  unsigned which = 0;
  while (blockIdx.x >= all.ends[which]) ++which;
  const size_t part = blockIdx.x - (which == 0 ? 0 : all.ends[which - 1]);
  constexpr size_t kBlocks = All::kChunk / kStateBlock;
  for (size_t k = threadIdx.x / kWarpLanes; k < kBlocks; k += blockDim.x / kWarpLanes) {
    const size_t block = part * kBlocks + k;
    if (block * kStateBlock < all.counts[which])
      update_block(all.bodies[which], block, all.counts[which], maps);
  }
}

template <class G>
cudaError_t launch_bodies(cudaStream_t stream, bool in_fours, const Bodies<HalfMoments<G>>& all) {
  return for_each_of(stream, in_fours, all);
}
template <class G>
cudaError_t launch_bodies(cudaStream_t stream, bool /*in_fours*/,
                          const Bodies<CodedMoments<G>>& all) {
  if (all.blocks == 0) return cudaSuccess;
  const auto config = config_of(stream, dim3(all.blocks), dim3(256));
  return cudaLaunchKernelEx(&config, coded_moments_kernel<G>, all);
}

template <class G>
HalfMoments<G> body_of(const PackedAdamW& call, const HalfMoments<G>* /*kind*/) {
  const size_t count = call.count();
  return {call.math,
          cuda_vector<float>(call.weights, count),
          cuda_vector<Bf16>(call.first, count),
          cuda_vector<Bf16>(call.second, count),
          cuda_vector<G>(call.gradients, count),
          call.first_bits,
          call.second_bits};
}
template <class G>
CodedMoments<G> body_of(const PackedAdamW& call, const CodedMoments<G>* /*kind*/) {
  const size_t count = call.count();
  return {call.math,
          cuda_vector<float>(call.weights, count),
          cuda_vector<uint8_t>(call.first, count),
          cuda_vector<uint8_t>(call.second, count),
          cuda_vector<float>(call.first_scales, call.first_scales.count()),
          cuda_vector<float>(call.second_scales, call.second_scales.count()),
          cuda_vector<G>(call.gradients, count)};
}

template <class Body>
cudaError_t launch_packed(cudaStream_t stream, std::span<const PackedAdamW> calls) {
  for (size_t first = 0; first < calls.size(); first += Bodies<Body>::kMost) {
    Bodies<Body> bodies{};
    bool in_fours = true;
    for (const PackedAdamW& call :
         calls.subspan(first, std::min(Bodies<Body>::kMost, calls.size() - first))) {
      const Body body = body_of(call, static_cast<const Body*>(nullptr));
      in_fours = in_fours && lie_in_fours(body.weights, body.first, body.second, body.gradients);
      bodies.add(body, call.count());
    }
    if (const cudaError_t result = launch_bodies(stream, in_fours, bodies); result != cudaSuccess)
      return result;
  }
  return cudaSuccess;
}

}  // namespace

void CudaElementwise::adamw_packed(std::span<const PackedAdamW> calls) {
  if (calls.empty()) return;
  for (const PackedAdamW& call : calls)
    GXP_ASSERT(call.first.dtype == calls[0].first.dtype &&
               call.gradients.dtype == calls[0].gradients.dtype);
  const cudaError_t result = with_element(calls[0].gradients.dtype, [&]<class G>(G /*gradient*/) {
    return calls[0].first.dtype == DType::kBF16
               ? launch_packed<HalfMoments<G>>(queue_.stream(), calls)
               : launch_packed<CodedMoments<G>>(queue_.stream(), calls);
  });
  check_cuda(result, "launch adamw");
}

}  // namespace gxp
