// The operations of kernels/ops.h over the rows of a matrix that are normalised or summed, on the
// CPU's threads. Names, shapes and formulas are those of ops.h.
#pragma once

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_buffers.h"
#include "kernels/ops.h"

namespace gxp {

// `pool` outlives it. Sums over rows are made of blocks that depend on the number of rows alone:
// the same bits for any number of threads.
class CpuNorms : public virtual Ops {
 public:
  CpuNorms(ThreadPool& pool, const CpuKernels& kernels)
      : pool_(pool), kernels_(kernels.rows), convert_(kernels.convert), buffers_(pool) {}

  void round_and_sum(const StreamOutputs& out, ConstTensor x) override;
  void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x, ConstTensor weight,
                         ConstTensor bias, float eps) override;
  void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                       ConstTensor weight, ConstTensor bias) override;
  void layernorm_backward(const NormBackward& norm) override;
  void rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight, float eps,
                       RmsWeight form) override;
  void rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight,
                     RmsWeight form) override;
  void rmsnorm_backward(const NormBackward& norm) override;

 private:
  struct RowBlocks;
  // Columns [first, first + count) of partial sums whose rows are `stride` floats apart.
  struct Columns {
    size_t first, count, stride;
  };

  // A vector of parameters as floats: its own memory, or `scratch`'s.
  const float* floats_of(const ConstTensor& vector, size_t count, Scratch& scratch) const;
  // The weight as it is multiplied.
  const float* factors_of(const ConstTensor& weight, size_t count, RmsWeight form);
  // What the backward pass of either norm reads and writes, but `dout` and `mean`.
  NormGradients gradients_of(const NormBackward& norm);
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
