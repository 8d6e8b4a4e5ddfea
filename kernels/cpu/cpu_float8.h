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

  // Returns `x` rounded to `type` under its scale and scaled back, as bf16, which holds each of
  // these numbers exactly. The next call overwrites the memory.
  ConstTensor round(const ConstTensor& x, Float8 type);

 private:
  ThreadPool& pool_;
  const Float8Kernels& kernels_;
  const ConvertKernels& convert_;
  std::vector<uint32_t> largest_;  // of blocks
  std::vector<uint16_t> rounded_;
};

}  // namespace gxp
