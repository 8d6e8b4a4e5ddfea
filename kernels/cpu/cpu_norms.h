// The operations of kernels/ops.h over the rows of a matrix that are normalised or summed, on the
// CPU's threads. Names, shapes and formulas are those of ops.h.
#pragma once

#include "kernels/cpu/convert.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_buffers.h"
#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// `pool` outlives it. Sums over rows are made of blocks that depend on the number of rows alone:
// the same bits for any number of threads.
class CpuNorms {
 public:
  CpuNorms(ThreadPool& pool, const RowKernels& kernels, const ConvertKernels& convert)
      : pool_(pool), kernels_(kernels), convert_(convert), buffers_(pool) {}

  // Ops::bias_backward.
  void add_columns(const Tensor& dbias, const ConstTensor& dout);
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
  struct RowBlocks;
  // Columns [first, first + count) of partial sums whose rows are `stride` floats apart.
  struct Columns {
    size_t first, count, stride;
  };

  // A vector of parameters as floats: its own memory, or `scratch`'s.
  const float* floats_of(const ConstTensor& vector, size_t count, Scratch& scratch) const;
  template <class Body>
  const float* sum_blocks(const ConstTensor& dout, const RowBlocks& blocks, size_t width,
                          const Body& body);
  void add_partial_sums(const Tensor& gradient, const float* partial, const RowBlocks& blocks,
                        const Columns& columns);

  ThreadPool& pool_;
  const RowKernels& kernels_;
  const ConvertKernels& convert_;
  ThreadBuffers buffers_;
  Scratch partial_, weight_, bias_;
};

}  // namespace gxp
