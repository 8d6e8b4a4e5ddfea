// The operations of kernels/ops.h that optimizers are made of, on the CPU's threads. Names, shapes
// and formulas are those of ops.h.
#pragma once

#include "kernels/cpu/convert.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/ops.h"
#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// `pool` outlives it. The same bits for any number of threads, and however ranges are cut.
class CpuUpdates {
 public:
  CpuUpdates(ThreadPool& pool, const ElementwiseKernels& kernels, const ConvertKernels& convert)
      : pool_(pool), kernels_(kernels), convert_(convert) {}

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

 private:
  // update(begin, count, gradients) for pieces of all elements, on all threads.
  template <class Update>
  void with_gradients(const ConstTensor& gradients, size_t count, const Update& update);

  ThreadPool& pool_;
  const ElementwiseKernels& kernels_;
  const ConvertKernels& convert_;
};

}  // namespace gxp
