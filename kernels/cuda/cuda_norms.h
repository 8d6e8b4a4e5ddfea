// The norms of kernels/ops.h, and sums of rows, on a GPU.
#pragma once

#include "kernels/cuda/cuda_queue.h"

namespace gxp {

struct CudaNormBackward;

class CudaNorms {
 public:
  explicit CudaNorms(CudaQueue& queue) : queue_(queue) {}

  void bias_backward(const Tensor& dbias, const ConstTensor& dout);
  void layernorm_forward(const Tensor& out, const Tensor& mean, const Tensor& rstd,
                         const ConstTensor& x, const ConstTensor& weight, const ConstTensor& bias,
                         float eps);
  void layernorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& mean,
                       const ConstTensor& rstd, const ConstTensor& weight, const ConstTensor& bias);
  void layernorm_backward(const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                          const ConstTensor& dout, const ConstTensor& x, const ConstTensor& mean,
                          const ConstTensor& rstd, const ConstTensor& weight);
  void rmsnorm_forward(const Tensor& out, const Tensor& rstd, const ConstTensor& x,
                       const ConstTensor& weight, float eps);
  void rmsnorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& rstd,
                     const ConstTensor& weight);
  void rmsnorm_backward(const Tensor& dx, const Tensor& dweight, const ConstTensor& dout,
                        const ConstTensor& x, const ConstTensor& rstd, const ConstTensor& weight);

 private:
  void backward(const CudaNormBackward& norm, const Tensor& dweight, const Tensor& dbias);

  CudaQueue& queue_;
};

}  // namespace gxp
