// The element-wise operations of kernels/ops.h on a GPU: the same names, shapes and formulas.
#pragma once

#include "kernels/ops.h"
#include "lib/device/stream.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// Queues on `stream`, which is CUDA's and outlives it. Tensors are f32 in the memory of the
// stream's GPU and stay alive until the stream is synchronised.
class CudaElementwise {
 public:
  explicit CudaElementwise(Stream& stream) : stream_(stream) {}
  void gelu_forward(Tensor out, ConstTensor x);
  void gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x);
  void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
             const AdamWStep& step);
  void fill(Tensor out, float value);

 private:
  Stream& stream_;
};

}  // namespace gxp
