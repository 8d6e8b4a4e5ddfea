// The attention operations of kernels/ops.h on the CPU's threads.
#pragma once

#include <vector>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/scratch.h"
#include "kernels/ops.h"

namespace gxp {

// Checks shapes and shares heads out among the threads of `pool`, which outlives it. Which thread
// works on a head does not change its bits.
class CpuAttention {
 public:
  CpuAttention(ThreadPool& pool, const AttentionKernels& kernels)
      : pool_(pool), kernels_(kernels), scratch_(static_cast<size_t>(pool.thread_count())) {}

  void forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv, int heads);
  void backward(const Tensor& dqkv, const Tensor& delta, const ConstTensor& dout,
                const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse, int heads);
  void forward(const Tensor& out, const Tensor& lse, const GroupedHeads<ConstTensor>& in);
  void backward(const GroupedHeads<Tensor>& gradients, const Tensor& delta, const ConstTensor& dout,
                const GroupedHeads<ConstTensor>& in, const ConstTensor& out,
                const ConstTensor& lse);

 private:
  void run_forward(const AttentionForward& args);
  void run_backward(const AttentionBackward& args);
  // body(i, scratch) for i < count, each thread with `floats` of its own.
  template <class Body>
  void for_each(size_t count, size_t floats, const Body& body);

  ThreadPool& pool_;
  const AttentionKernels& kernels_;
  std::vector<Scratch> scratch_;  // one a thread
};

}  // namespace gxp
