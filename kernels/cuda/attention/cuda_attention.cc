#include "kernels/cuda/attention/cuda_attention.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/cudnn/cudnn_library.h"
#include "kernels/cudnn_workspace.h"
#include "lib/base/log.h"
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

using Arrays = std::initializer_list<const void*>;

bool are_aligned(Arrays arrays, size_t bytes) {
  return std::all_of(arrays.begin(), arrays.end(), [&](const void* array) {
    return reinterpret_cast<uintptr_t>(array) % bytes == 0;
  });
}

template <class Args>
const Path& path_for(const Args& args, Arrays arrays) {
  return *std::find_if(std::begin(kPaths), std::end(kPaths), [&](const Path& path) {
    return path.takes(args.dtype, args.shape.head_size) && are_aligned(arrays, path.alignment);
  });
}

template <class Args>
Support cudnn_may_take(const Args& args, Arrays arrays) {
  Support support =
      cudnn_takes(args.dtype, args.shape.head_size, args.scores, args.document_begin != nullptr);
  if (support && !are_aligned(arrays, 16))
    return {false, "arrays do not begin at a multiple of 16 bytes"};
  return support;
}

}  // namespace

CudaAttention::CudaAttention(CudaQueue& queue, AttentionBy by, const CudnnSlicing& slicing)
    : AttentionOps(MemorySpace::kCuda), queue_(queue), by_(by) {
  if (by == AttentionBy::kOwn) return;
  const CudnnLibrary& library = cudnn_library();
  Support support = library.support;
  if (support) support = cudnn_.emplace(queue, library.functions, slicing).started();
  if (support) {
    description_ = "attention by cuDNN " + cudnn_version_name(library.functions.version());
    return;
  }
  cudnn_.reset();
  if (by == AttentionBy::kCudnn)
    fail(ErrorKind::kUnavailable,
         "compute attention by cuDNN: {}; install cuDNN 9 for CUDA 13 and name its folder in "
         "LD_LIBRARY_PATH, or set train.attention to auto or own",
         support.reason);
  description_ = "attention by gxp, not cuDNN: " + support.reason;
}

// With `compute`, which says why if it does not.
template <class Args, class Compute>
bool CudaAttention::is_computed_by_cudnn(const Args& args, Arrays arrays, Compute compute) {
  if (!cudnn_) return false;
  Support support = cudnn_may_take(args, arrays);
  if (support) support = compute(*cudnn_);
  if (support) return true;
  const std::string refusal = fmt::format("heads of {} channels in {}: {}", args.shape.head_size,
                                          to_string(args.dtype), support.reason);
  if (by_ == AttentionBy::kCudnn)
    fail(ErrorKind::kUnavailable,
         "compute attention by cuDNN of {}; set train.attention to auto or own", refusal);
  if (refusals_.insert(refusal).second)
    log_warn("attention by gxp; cuDNN does not support {}", refusal);
  return false;
}

void CudaAttention::attend(const AttentionForward& args) {
  const auto& in = args.in;
  const Arrays arrays = {in.queries, in.keys, in.values, args.out};
  const auto compute = [&](CudnnAttention& cudnn) { return cudnn.forward(args); };
  if (is_computed_by_cudnn(args, arrays, compute)) return;
  const Path& path = path_for(args, arrays);
  check_cuda(path.forward(queue_.stream(), args), "launch attention_forward");
}

void CudaAttention::attend(const AttentionCached& args) {
  check_cuda(launch_cached_attention(queue_.stream(), args), "launch attention_cached");
}

void CudaAttention::attend(const AttentionBackward& args) {
  const auto& in = args.in;
  const auto& to = args.gradients;
  const Arrays arrays = {in.queries, in.keys,    in.values, args.out,
                         args.dout,  to.queries, to.keys,   to.values};
  const auto compute = [&](CudnnAttention& cudnn) { return cudnn.backward(args); };
  if (is_computed_by_cudnn(args, arrays, compute)) return;
  const Path& path = path_for(args, arrays);
  check_cuda(launch_attention_delta(queue_.stream(), args), "launch the row sums of attention");
  check_cuda(path.backward(queue_.stream(), args), "launch attention_backward");
}

void CudaAttention::raise_largest(const Tensor& written) {
  if (written.largest != nullptr) gxp::raise_largest(queue_, written.largest, written);
}

}  // namespace gxp
