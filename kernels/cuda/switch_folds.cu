// What a switch between GPUs reduces and stores (DeviceFolds::fold_in_switch()): each thread moves
// 16 bytes at a time, of which 32 blocks have 256 KiB under way. Among p GPUs each of them gets
// sums at 1/(p + 1) of its port's rate (collective/engine/device_memory/switch_way.h): 90 GB/s of
// an NVLink 4 port of 450 GB/s for p = 4, for which 256 KiB suffice up to a latency of 2.9 us.
#include <algorithm>

#include "kernels/cuda/cuda_folds.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/multimem.cuh"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

constexpr unsigned kThreads = 512;
constexpr size_t kUnit = DeviceFolds::kSwitchBytes;
static_assert(sizeof(uint4) == kUnit);

template <class T, SwitchOp kOp>
struct Reduced {
  const std::byte* from;
  __device__ uint4 operator()(size_t i) const { return multimem_reduce<T, kOp>(from + i * kUnit); }
};
struct Own {
  const std::byte* from;
  __device__ uint4 operator()(size_t i) const { return reinterpret_cast<const uint4*>(from)[i]; }
};

// Grid-stride, so any launch shape is correct.
template <class Read>
__global__ __launch_bounds__(kThreads) void switch_kernel(std::byte* to, Read read, size_t units) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  multimem_fence();
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < units; i += stride)
    multimem_store(to + i * kUnit, read(i));
  multimem_fence();
}

template <class Read>
void launch(Stream& stream, std::byte* to, const Read& read, size_t bytes) {
  GXP_ASSERT(bytes % kUnit == 0 && uintptr_t(to) % kUnit == 0 && uintptr_t(read.from) % kUnit == 0);
  const size_t units = bytes / kUnit;
  if (units == 0) return;
  const size_t blocks = std::min<size_t>((units + kThreads - 1) / kThreads, DeviceFolds::kBlocks);
  const auto config = config_of(native_stream(stream), dim3(unsigned(blocks)), kThreads);
  check_cuda(cudaLaunchKernelEx(&config, switch_kernel<Read>, to, read, units),
             "launch a reduction by the NVLink switch");
}

}  // namespace

void queue_switch_fold(Stream& stream, std::byte* to, const std::byte* from, size_t bytes,
                       DType dtype, ReduceOp op) {
  GXP_ASSERT(switch_reduces(op, dtype));
  const auto fold_integers = [&]<class T>(T) {
    if (op == ReduceOp::kMin) return launch(stream, to, Reduced<T, SwitchOp::kMin>{from}, bytes);
    if (op == ReduceOp::kMax) return launch(stream, to, Reduced<T, SwitchOp::kMax>{from}, bytes);
    launch(stream, to, Reduced<T, SwitchOp::kSum>{from}, bytes);
  };
  switch (dtype) {
    case DType::kI32:
      return fold_integers(int32_t{});
    case DType::kI64:
      return fold_integers(int64_t{});
    case DType::kBF16:
      return launch(stream, to, Reduced<Bf16, SwitchOp::kSum>{from}, bytes);
    case DType::kF16:
      return launch(stream, to, Reduced<Fp16, SwitchOp::kSum>{from}, bytes);
    default:
      return launch(stream, to, Reduced<float, SwitchOp::kSum>{from}, bytes);
  }
}

void queue_switch_store(Stream& stream, std::byte* to, const std::byte* from, size_t bytes) {
  launch(stream, to, Own{from}, bytes);
}

}  // namespace gxp
