#include "kernels/cuda/table/cuda_ops.h"

#include "kernels/cuda/cuda_parts.h"
#include "kernels/cuda/gemm/cuda_gemm.h"

namespace gxp {
namespace {

class CudaOps final : private CudaQueue,
                      public CudaElementwise,
                      public CudaGemm,
                      public CudaNorms,
                      public CudaTokens,
                      public CudaAttention,
                      public CudaSums {
 public:
  CudaOps(Stream& stream, Device& device, const CudaOpsOptions& options)
      : CudaQueue(stream, device),
        CudaElementwise(queue()),
        CudaGemm(queue(), options.gemm_cache, options.tf32, options.float8_fast_sums),
        CudaNorms(queue()),
        CudaTokens(queue()),
        CudaAttention(queue(), options.attention, options.cudnn_slicing),
        CudaSums(queue()),
        description_(device.description()) {
    if (!attention_description().empty()) description_ += ", " + attention_description();
  }

  [[nodiscard]] std::string description() const override { return description_; }

 private:
  CudaQueue& queue() { return *this; }

  std::string description_;
};

}  // namespace

std::unique_ptr<Ops> make_cuda_ops(Stream& stream, Device& device, const CudaOpsOptions& options) {
  return std::make_unique<CudaOps>(stream, device, options);
}

}  // namespace gxp
