// The element-wise operations of kernels/ops.h on a GPU.
#pragma once

#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"

namespace gxp {

class CudaElementwise {
 public:
  explicit CudaElementwise(CudaQueue& queue) : queue_(queue) {}

  void gelu_forward(const Tensor& out, const ConstTensor& x);
  void gelu_backward(const Tensor& dx, const Tensor& activated, const ConstTensor& dout,
                     const ConstTensor& x);
  void swiglu_forward(const Tensor& out, const ConstTensor& gate, const ConstTensor& up);
  void swiglu_backward(const Tensor& dout, const Tensor& gate, const Tensor& up);
  void convert(const Tensor& out, const ConstTensor& x);
  void add(const Tensor& out, const ConstTensor& a, const ConstTensor& b);
  void round_stochastically(const Tensor& out, const ConstTensor& x, const RandomBits& bits);
  void fill(const Tensor& out, float value);

 private:
  CudaQueue& queue_;
};

}  // namespace gxp
