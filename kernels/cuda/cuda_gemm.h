// Matrix products on a GPU, by cuBLASLt.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"

namespace gxp {

class CudaGemm {
 public:
  // `cache`: the file of kernels/cuda/gemm_cache.h, and each product's algorithms are timed once
  // for it; "": the one that cuBLASLt holds for the best.
  CudaGemm(CudaQueue& queue, const std::string& cache);
  ~CudaGemm();
  void matmul(const Tensor& out, const ConstTensor& a, const ConstTensor& b,
              const MatmulOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
