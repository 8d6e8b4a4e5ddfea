// The optimizers of kernels/ops.h, and sums over whole tensors, on a GPU.
#pragma once

#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"

namespace gxp {

class CudaUpdates {
 public:
  explicit CudaUpdates(CudaQueue& queue) : queue_(queue) {}

  void adamw(const Tensor& weights, const Tensor& first, const Tensor& second,
             const ConstTensor& gradients, const AdamWStep& step);
  void sgd(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
           const SgdStep& step);
  void lion(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
            const LionStep& step);
  void momentum(const Tensor& direction, const Tensor& momentum, const ConstTensor& gradients,
                const MomentumStep& step);
  void sums_of_squares(const Tensor& of_rows, const Tensor& of_columns, const ConstTensor& x);
  void scale_rows_and_columns(const Tensor& out, const ConstTensor& x, const ConstTensor& rows,
                              const ConstTensor& columns);
  // Return when the sum is known.
  double sum_of_squares(const ConstTensor& x);
  double sum(const ConstTensor& x);
  void add_sum_of_squares(const Tensor& total, const ConstTensor& x);

 private:
  double sum(const ConstTensor& x, bool of_squares);

  CudaQueue& queue_;
};

}  // namespace gxp
