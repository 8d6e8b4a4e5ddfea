#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "kernels/cuda/cuda_attention.h"

namespace gxp {
void CudaAttention::forward(const Tensor& out, const Tensor& lse, const ConstTensor& qkv,
                            int heads) {
  fail(ErrorKind::kInternal, "cuda_attention forward");
}
void CudaAttention::backward(const Tensor& dqkv, const Tensor& scratch, const ConstTensor& dout,
                             const ConstTensor& qkv, const ConstTensor& out, const ConstTensor& lse,
                             int heads) {
  fail(ErrorKind::kInternal, "cuda_attention backward");
}
void CudaAttention::forward(const Tensor& out, const Tensor& lse,
                            const GroupedHeads<ConstTensor>& in) {
  fail(ErrorKind::kInternal, "cuda_attention forward");
}
void CudaAttention::backward(const GroupedHeads<Tensor>& gradients, const Tensor& scratch,
                             const ConstTensor& dout, const GroupedHeads<ConstTensor>& in,
                             const ConstTensor& out, const ConstTensor& lse) {
  fail(ErrorKind::kInternal, "cuda_attention backward");
}
}  // namespace gxp
