#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/elementwise_launch.h"
#include "kernels/math/adamw_factors.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"

namespace gxp {
namespace {

template <class Bytes>
void check_array(const BasicTensor<Bytes>& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kF32 && tensor.memory.space == MemorySpace::kCuda);
  GXP_ASSERT(tensor.count() == count);
}

float* floats(const Tensor& tensor, size_t count) {
  check_array(tensor, count);
  return reinterpret_cast<float*>(tensor.memory.data);
}
const float* floats(const ConstTensor& tensor, size_t count) {
  check_array(tensor, count);
  return reinterpret_cast<const float*>(tensor.memory.data);
}

}  // namespace

void CudaElementwise::gelu_forward(Tensor out, ConstTensor x) {
  const size_t count = x.count();
  check_cuda(
      launch_gelu_forward(native_stream(stream_), count, floats(out, count), floats(x, count)),
      "launch gelu_forward");
}

void CudaElementwise::gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x) {
  const size_t count = x.count();
  check_cuda(launch_gelu_backward(native_stream(stream_), count, floats(dx, count),
                                  floats(activated, count), floats(dout, count), floats(x, count)),
             "launch gelu_backward");
}

void CudaElementwise::adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
                            const AdamWStep& step) {
  const size_t count = weights.count();
  const CudaAdamWArrays arrays = {floats(weights, count), floats(first, count),
                                  floats(second, count), floats(gradients, count)};
  check_cuda(launch_adamw(native_stream(stream_), count, arrays, adamw_factors(step)),
             "launch adamw");
}

void CudaElementwise::fill(Tensor out, float value) {
  const size_t count = out.count();
  check_cuda(launch_fill(native_stream(stream_), count, floats(out, count), value), "launch fill");
}

}  // namespace gxp
