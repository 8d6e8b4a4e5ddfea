// Causal attention of kernels/ops.h on a GPU.
#pragma once

#include "kernels/attention_args.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"

namespace gxp {

class CudaAttention {
 public:
  explicit CudaAttention(CudaQueue& queue) : queue_(queue) {}

  void forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv, int heads);
  void backward(const Tensor& dqkv, const Tensor& scratch, const ConstTensor& dout,
                const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse, int heads);
  void forward(const Tensor& out, const Tensor& lse, const GroupedHeads<ConstTensor>& in);
  void backward(const GroupedHeads<Tensor>& gradients, const Tensor& scratch,
                const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                const ConstTensor& out, const ConstTensor& lse);

 private:
  void run(const AttentionForward& args);
  void run(const AttentionBackward& args);

  CudaQueue& queue_;
};

}  // namespace gxp
