#include "kernels/cuda/cuda_ops.h"

#include "kernels/cuda/cuda_attention.h"
#include "kernels/cuda/cuda_elementwise.h"
#include "kernels/cuda/cuda_gemm.h"
#include "kernels/cuda/cuda_norms.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cuda_tokens.h"
#include "kernels/cuda/cuda_updates.h"

namespace gxp {
namespace {

class CudaOps final : public Ops {
 public:
  CudaOps(Stream& stream, Device& device, const CudaOpsOptions& options)
      : description_(device.description()),
        queue_(stream, device),
        elementwise_(queue_),
        gemm_(queue_, options.gemm_cache),
        norms_(queue_),
        tokens_(queue_),
        attention_(queue_),
        updates_(queue_) {}

  [[nodiscard]] std::string description() const override { return description_; }

  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override {
    gemm_.matmul(out, a, b, options);
  }
  void bias_backward(Tensor dbias, ConstTensor dout) override { norms_.bias_backward(dbias, dout); }

  void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x, ConstTensor weight,
                         ConstTensor bias, float eps) override {
    norms_.layernorm_forward(out, mean, rstd, x, weight, bias, eps);
  }
  void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                       ConstTensor weight, ConstTensor bias) override {
    norms_.layernorm_apply(out, x, mean, rstd, weight, bias);
  }
  void layernorm_backward(Tensor dx, Tensor dweight, Tensor dbias, ConstTensor dout, ConstTensor x,
                          ConstTensor mean, ConstTensor rstd, ConstTensor weight) override {
    norms_.layernorm_backward(dx, dweight, dbias, dout, x, mean, rstd, weight);
  }
  void rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                       float eps) override {
    norms_.rmsnorm_forward(out, rstd, x, weight, eps);
  }
  void rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight) override {
    norms_.rmsnorm_apply(out, x, rstd, weight);
  }
  void rmsnorm_backward(Tensor dx, Tensor dweight, ConstTensor dout, ConstTensor x,
                        ConstTensor rstd, ConstTensor weight) override {
    norms_.rmsnorm_backward(dx, dweight, dout, x, rstd, weight);
  }

  void gelu_forward(Tensor out, ConstTensor x) override { elementwise_.gelu_forward(out, x); }
  void gelu_backward(Tensor dx, Tensor activated, ConstTensor dout, ConstTensor x) override {
    elementwise_.gelu_backward(dx, activated, dout, x);
  }
  void swiglu_forward(Tensor out, ConstTensor gate, ConstTensor up) override {
    elementwise_.swiglu_forward(out, gate, up);
  }
  void swiglu_backward(Tensor dout, Tensor gate, Tensor up) override {
    elementwise_.swiglu_backward(dout, gate, up);
  }

  void rope_forward(Tensor x, int head_size, double theta) override {
    tokens_.rotate(x, head_size, theta, 1.0f);
  }
  void rope_backward(Tensor dx, int head_size, double theta) override {
    tokens_.rotate(dx, head_size, theta, -1.0f);
  }

  void attention_forward(Tensor out, Tensor lse, ConstTensor qkv, int heads) override {
    attention_.forward(out, lse, qkv, heads);
  }
  void attention_backward(Tensor dqkv, Tensor scratch, ConstTensor dout, ConstTensor qkv,
                          ConstTensor out, ConstTensor lse, int heads) override {
    attention_.backward(dqkv, scratch, dout, qkv, out, lse, heads);
  }
  void grouped_attention_forward(Tensor out, Tensor lse,
                                 const GroupedHeads<ConstTensor>& in) override {
    attention_.forward(out, lse, in);
  }
  void grouped_attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                  ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                  ConstTensor out, ConstTensor lse) override {
    attention_.backward(gradients, scratch, dout, in, out, lse);
  }

  void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                         ConstTensor position_table) override {
    tokens_.embedding_forward(out, tokens, token_table, position_table);
  }
  void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                          ConstTensor tokens) override {
    tokens_.embedding_backward(dtoken_table, dposition_table, dout, tokens);
  }
  void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) override {
    tokens_.classifier(logits, losses, targets, scale);
  }
  void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) override {
    tokens_.classifier_loss(losses, logits, targets);
  }

  void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
             const AdamWStep& step) override {
    updates_.adamw(weights, first, second, gradients, step);
  }
  void sgd(Tensor weights, Tensor momentum, ConstTensor gradients, const SgdStep& step) override {
    updates_.sgd(weights, momentum, gradients, step);
  }
  void lion(Tensor weights, Tensor momentum, ConstTensor gradients, const LionStep& step) override {
    updates_.lion(weights, momentum, gradients, step);
  }
  void momentum(Tensor direction, Tensor momentum, ConstTensor gradients,
                const MomentumStep& step) override {
    updates_.momentum(direction, momentum, gradients, step);
  }
  void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) override {
    updates_.sums_of_squares(of_rows, of_columns, x);
  }
  void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                              ConstTensor columns) override {
    updates_.scale_rows_and_columns(out, x, rows, columns);
  }

  double sum_of_squares(ConstTensor x) override { return updates_.sum_of_squares(x); }
  void add_sum_of_squares(Tensor total, ConstTensor x) override {
    updates_.add_sum_of_squares(total, x);
  }
  double sum(ConstTensor x) override { return updates_.sum(x); }
  void convert(Tensor out, ConstTensor x) override { elementwise_.convert(out, x); }
  void round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) override {
    elementwise_.round_stochastically(out, x, bits);
  }
  void add(Tensor out, ConstTensor a, ConstTensor b) override { elementwise_.add(out, a, b); }
  void fill(Tensor out, float value) override { elementwise_.fill(out, value); }

 private:
  std::string description_;
  CudaQueue queue_;
  CudaElementwise elementwise_;
  CudaGemm gemm_;
  CudaNorms norms_;
  CudaTokens tokens_;
  CudaAttention attention_;
  CudaUpdates updates_;
};

}  // namespace

std::unique_ptr<Ops> make_cuda_ops(Stream& stream, Device& device, const CudaOpsOptions& options) {
  return std::make_unique<CudaOps>(stream, device, options);
}

}  // namespace gxp
