#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "kernels/cuda/cuda_attention.h"
#include "kernels/cuda/cuda_norms.h"
#include "kernels/cuda/cuda_tokens.h"
#include "kernels/cuda/cuda_updates.h"

namespace gxp {
void CudaNorms::bias_backward(const Tensor& dbias, const ConstTensor& dout) {
  fail(ErrorKind::kInternal, "cuda_norms bias_backward");
}
void CudaNorms::layernorm_forward(const Tensor& out, const Tensor& mean, const Tensor& rstd,
                                  const ConstTensor& x, const ConstTensor& weight,
                                  const ConstTensor& bias, float eps) {
  fail(ErrorKind::kInternal, "cuda_norms layernorm_forward");
}
void CudaNorms::layernorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& mean,
                                const ConstTensor& rstd, const ConstTensor& weight,
                                const ConstTensor& bias) {
  fail(ErrorKind::kInternal, "cuda_norms layernorm_apply");
}
void CudaNorms::layernorm_backward(const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                                   const ConstTensor& dout, const ConstTensor& x,
                                   const ConstTensor& mean, const ConstTensor& rstd,
                                   const ConstTensor& weight) {
  fail(ErrorKind::kInternal, "cuda_norms layernorm_backward");
}
void CudaNorms::rmsnorm_forward(const Tensor& out, const Tensor& rstd, const ConstTensor& x,
                                const ConstTensor& weight, float eps) {
  fail(ErrorKind::kInternal, "cuda_norms rmsnorm_forward");
}
void CudaNorms::rmsnorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& rstd,
                              const ConstTensor& weight) {
  fail(ErrorKind::kInternal, "cuda_norms rmsnorm_apply");
}
void CudaNorms::rmsnorm_backward(const Tensor& dx, const Tensor& dweight, const ConstTensor& dout,
                                 const ConstTensor& x, const ConstTensor& rstd,
                                 const ConstTensor& weight) {
  fail(ErrorKind::kInternal, "cuda_norms rmsnorm_backward");
}
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
void CudaUpdates::adamw(const Tensor& weights, const Tensor& first, const Tensor& second,
                        const ConstTensor& gradients, const AdamWStep& step) {
  fail(ErrorKind::kInternal, "cuda_updates adamw");
}
void CudaUpdates::sgd(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
                      const SgdStep& step) {
  fail(ErrorKind::kInternal, "cuda_updates sgd");
}
void CudaUpdates::lion(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
                       const LionStep& step) {
  fail(ErrorKind::kInternal, "cuda_updates lion");
}
void CudaUpdates::momentum(const Tensor& direction, const Tensor& momentum,
                           const ConstTensor& gradients, const MomentumStep& step) {
  fail(ErrorKind::kInternal, "cuda_updates momentum");
}
void CudaUpdates::sums_of_squares(const Tensor& of_rows, const Tensor& of_columns,
                                  const ConstTensor& x) {
  fail(ErrorKind::kInternal, "cuda_updates sums_of_squares");
}
void CudaUpdates::scale_rows_and_columns(const Tensor& out, const ConstTensor& x,
                                         const ConstTensor& rows, const ConstTensor& columns) {
  fail(ErrorKind::kInternal, "cuda_updates scale_rows_and_columns");
}
double CudaUpdates::sum_of_squares(const ConstTensor& x) {
  fail(ErrorKind::kInternal, "cuda_updates sum_of_squares");
}
double CudaUpdates::sum(const ConstTensor& x) { fail(ErrorKind::kInternal, "cuda_updates sum"); }
}  // namespace gxp
