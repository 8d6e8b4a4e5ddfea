#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "kernels/cuda/cuda_attention.h"
#include "kernels/cuda/cuda_tokens.h"

namespace gxp {
void CudaTokens::embedding_forward(const Tensor& out, const ConstTensor& tokens,
                                   const ConstTensor& token_table,
                                   const ConstTensor& position_table) {
  fail(ErrorKind::kInternal, "cuda_tokens embedding_forward");
}
void CudaTokens::embedding_backward(const Tensor& dtoken_table, const Tensor& dposition_table,
                                    const ConstTensor& dout, const ConstTensor& tokens) {
  fail(ErrorKind::kInternal, "cuda_tokens embedding_backward");
}
void CudaTokens::classifier(const Tensor& logits, const Tensor& losses, const ConstTensor& targets,
                            float scale) {
  fail(ErrorKind::kInternal, "cuda_tokens classifier");
}
void CudaTokens::classifier_loss(const Tensor& losses, const ConstTensor& logits,
                                 const ConstTensor& targets) {
  fail(ErrorKind::kInternal, "cuda_tokens classifier_loss");
}
void CudaTokens::rotate(const Tensor& x, int head_size, double theta, float direction) {
  fail(ErrorKind::kInternal, "cuda_tokens rotate");
}
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
