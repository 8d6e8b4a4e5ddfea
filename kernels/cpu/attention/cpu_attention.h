// The attention operations of kernels/ops.h on the CPU's threads.
#pragma once

#include "kernels/attention_ops.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/thread_buffers.h"

namespace gxp {

// Shares heads out among the threads of `pool`, which outlives it. Which thread works on a head
// does not change its bits.
class CpuAttention : public AttentionOps {
 public:
  CpuAttention(ThreadPool& pool, const AttentionKernels& kernels)
      : AttentionOps(MemorySpace::kHost), kernels_(kernels), buffers_(pool) {}

 private:
  void attend(const AttentionForward& args) override;
  void attend(const AttentionCached& args) override;
  void attend(const AttentionBackward& args) override;

  const AttentionKernels& kernels_;
  ThreadBuffers buffers_;
};

}  // namespace gxp
