// Operands of products in 8 bits (kernels/ops.h) on the CPU.
#pragma once

#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/float8.h"
#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

class CpuFloat8 {
 public:
  // All outlive it.
  CpuFloat8(ThreadPool& pool, const Float8Kernels& kernels, const ConvertKernels& convert)
      : pool_(pool), kernels_(kernels), convert_(convert) {}

  // `x` as numbers of `type` times its scale, which are bf16's too: in memory that the next call
  // overwrites.
  ConstTensor round(const ConstTensor& x, Float8 type);

 private:
  ThreadPool& pool_;
  const Float8Kernels& kernels_;
  const ConvertKernels& convert_;
  std::vector<uint32_t> largest_;  // of blocks
  std::vector<uint16_t> rounded_;
};

}  // namespace gxp
