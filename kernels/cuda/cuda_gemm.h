// Matrix products on a GPU, by cuBLASLt.
#pragma once

#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"

namespace gxp {

class CudaGemm {
 public:
  explicit CudaGemm(CudaQueue& queue);
  ~CudaGemm();
  void matmul(const Tensor& out, const ConstTensor& a, const ConstTensor& b,
              const MatmulOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
