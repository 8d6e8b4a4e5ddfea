// The operations of kernels/ops.h on a GPU, by family. An operation's method is in the .cu file of
// its kernels; it asserts shapes and queues the kernels. `queue` outlives each part.
#pragma once

#include <list>

#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"

namespace gxp {

class CudaElementwise : public virtual Ops {
 public:
  explicit CudaElementwise(CudaQueue& queue) : queue_(queue) {}

  void apply(const ElementwiseCall& call) override;
  void apply_all(std::span<const ElementwiseCall> calls) override;
  void adamw_packed(std::span<const PackedAdamW> calls) override;  // packed_adamw.cu
  void convert(Tensor out, ConstTensor x) override;
  void round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) override;
  void drop_out(Tensor out, ConstTensor x, const Dropout& dropout) override;
  void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                              ConstTensor columns) override;

 private:
  CudaQueue& queue_;
};
// out(rows, columns) += row(columns), each of any type.
void add_row(const CudaQueue& queue, CudaArray out, ConstCudaArray row, size_t rows,
             size_t columns);

class CudaNorms : public virtual Ops {
 public:
  explicit CudaNorms(CudaQueue& queue) : queue_(queue) {}

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
  CudaQueue& queue_;
};
// What a norm adds to its weight; -0 changes no bit.
inline float weight_offset(RmsWeight form) { return form == RmsWeight::kPlusOne ? 1.0f : -0.0f; }
// Raises *place, in the GPU's memory, to the largest |x|: for what other libraries' kernels write.
void raise_largest(const CudaQueue& queue, float* place, const ConstTensor& x);
// out(columns) += the column sums of `rows` rows that are `stride` floats apart.
void add_columns(const CudaQueue& queue, size_t rows, size_t columns, size_t stride, float* out,
                 const float* partial);

// A token or a target beyond the vocabulary is found by CudaQueue::read().
class CudaTokens : public virtual Ops {
 public:
  explicit CudaTokens(CudaQueue& queue) : queue_(queue) {}

  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table, ConstTensor document_begin) override;
  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens, int padding, ConstTensor document_begin) override;
  void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) override;
  void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) override;
  void rotate(Tensor x, const HeadColumns& heads, const Rotary& rotary, float direction,
              const RotatedPositions& positions) override;

 private:
  // A table for each Rotary that was asked for, a few in a model.
  struct Angles {
    Rotary rotary;
    size_t positions = 0;
    Buffer factors = {};  // (2, positions, pairs): cosines and sines
  };
  // With at least so many positions. Where a graph may read it, a table is only replaced as
  // CudaQueue::upload() has it.
  const Angles& angles_of(const Rotary& rotary, size_t positions);

  CudaQueue& queue_;
  std::list<Angles> angles_;  // whose elements stay where they are
};

// Sums in f64 whose order depends on the count alone, and of bits, which have none.
class CudaSums : public virtual Ops {
 public:
  explicit CudaSums(CudaQueue& queue) : queue_(queue) {}

  void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) override;
  double sum_of_squares(ConstTensor x) override { return sum(x, true); }
  double sum(ConstTensor x) override { return sum(x, false); }
  void add_sum_of_squares(Tensor total, ConstTensor x) override;
  uint64_t fingerprint(std::span<const ConstTensor> parts) override;

 private:
  double sum(const ConstTensor& x, bool of_squares);
  // *total += the sum; `partial` has room for partial_sums_of(count).
  void add_sum(double* total, double* partial, const ConstTensor& x, bool of_squares);

  CudaQueue& queue_;
};

}  // namespace gxp
