#include "kernels/cuda/cuda_attention.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "kernels/attention_tensors.h"
#include "kernels/cuda/attention_launch.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

// A way to compute attention, and what it can be used for.
struct Path {
  bool (*takes)(DType dtype, size_t head_size);
  size_t alignment;  // of the heads' arrays, in bytes
  cudaError_t (*forward)(cudaStream_t stream, const AttentionForward& args);
  cudaError_t (*backward)(cudaStream_t stream, const AttentionBackward& args);
};

// The first that can be used is. The last always can.
constexpr Path kPaths[] = {
    {mma_attention_takes, 16, launch_mma_attention_forward, launch_mma_attention_backward},
    {[](DType, size_t) { return true; }, 1, launch_plain_attention_forward,
     launch_plain_attention_backward},
};

template <class Args>
const Path& path_for(const Args& args, std::initializer_list<const void*> arrays) {
  return *std::find_if(std::begin(kPaths), std::end(kPaths), [&](const Path& path) {
    return path.takes(args.dtype, args.shape.head_size) &&
           std::all_of(arrays.begin(), arrays.end(), [&](const void* array) {
             return reinterpret_cast<uintptr_t>(array) % path.alignment == 0;
           });
  });
}

}  // namespace

void CudaAttention::forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv,
                            int heads) {
  run(attention_args(MemorySpace::kCuda, {out, lse}, qkv, heads));
}

void CudaAttention::forward(const Tensor& out, const Tensor& lse,
                            const GroupedHeads<ConstTensor>& in) {
  run(attention_args(MemorySpace::kCuda, {out, lse}, in));
}

void CudaAttention::backward(const Tensor& dqkv, const Tensor& scratch, const ConstTensor& dout,
                             const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse,
                             int heads) {
  run(attention_args(MemorySpace::kCuda, dqkv, {scratch, dout, out, lse}, qkv, heads));
}

void CudaAttention::backward(const GroupedHeads<Tensor>& gradients, const Tensor& scratch,
                             const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                             const ConstTensor& out, const ConstTensor& lse) {
  run(attention_args(MemorySpace::kCuda, gradients, {scratch, dout, out, lse}, in));
}

void CudaAttention::run(const AttentionForward& args) {
  const auto& in = args.in;
  const Path& path = path_for(args, {in.queries, in.keys, in.values, args.out});
  check_cuda(path.forward(queue_.stream(), args), "launch attention_forward");
}

void CudaAttention::run(const AttentionBackward& args) {
  const auto& in = args.in;
  const auto& to = args.gradients;
  const Path& path =
      path_for(args, {in.queries, in.keys, in.values, args.dout, to.queries, to.keys, to.values});
  check_cuda(launch_attention_delta(queue_.stream(), args), "launch the row sums of attention");
  check_cuda(path.backward(queue_.stream(), args), "launch attention_backward");
}

}  // namespace gxp
