// kernels/ops.h on a GPU: operations are queued on a CUDA stream; those that return a number wait
// for it.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/attention/cuda_attention.h"
#include "kernels/ops.h"
#include "lib/device/device.h"

namespace gxp {

struct CudaOpsOptions {
  std::string gemm_cache = {};  // as CublasProducts takes it, with the next
  bool tf32 = false;
  AttentionBy attention = AttentionBy::kOwn;
  CudnnSlicing cudnn_slicing = {};
  bool float8_fast_sums = false;  // as CudaGemm takes it
};

// `stream` is of `device`, a CUDA device; both outlive it. Throws kUnavailable if cuBLASLt, or
// cuDNN with AttentionBy::kCudnn, cannot be loaded.
std::unique_ptr<Ops> make_cuda_ops(Stream& stream, Device& device,
                                   const CudaOpsOptions& options = {});

}  // namespace gxp
