#include "kernels/cuda/cuda_ops.h"

#include "kernels/cuda/cuda_elementwise.h"
#include "kernels/cuda/cuda_norms.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cuda_tokens.h"
#include "kernels/cuda/cuda_updates.h"
#include "kernels/cuda/gemm/cuda_gemm.h"
#include "kernels/ops_of_parts.h"

namespace gxp {
namespace {

class CudaOps final : public OpsOfParts<CudaOps> {
 public:
  CudaOps(Stream& stream, Device& device, const CudaOpsOptions& options)
      : queue_(stream, device),
        elementwise_(queue_),
        gemm_(queue_, options.gemm_cache),
        norms_(queue_),
        tokens_(queue_),
        attention_(queue_, options.attention, options.most_cudnn_workspace),
        updates_(queue_),
        description_(device.description()) {
    if (!attention_.description().empty()) description_ += ", " + attention_.description();
  }

  [[nodiscard]] std::string description() const override { return description_; }

  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override {
    gemm_.matmul(out, a, b, options);
  }
  void bias_backward(Tensor dbias, ConstTensor dout) override { norms_.bias_backward(dbias, dout); }
  void linear_gelu(const LinearGelu& layer) override { gemm_.linear_gelu(layer); }
  void linear_backward(const LinearBackward& layer) override {
    gemm_.linear_backward(layer);
    if (layer.dbias.memory.data == nullptr) return;
    if (!layer.accumulate) fill(layer.dbias, 0.0f);
    bias_backward(layer.dbias, layer.dout);
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
  friend class OpsOfParts<CudaOps>;

  CudaQueue queue_;
  CudaElementwise elementwise_;
  CudaGemm gemm_;
  CudaNorms norms_;
  CudaTokens tokens_;
  CudaAttention attention_;
  CudaUpdates updates_;
  std::string description_;
};

}  // namespace

std::unique_ptr<Ops> make_cuda_ops(Stream& stream, Device& device, const CudaOpsOptions& options) {
  return std::make_unique<CudaOps>(stream, device, options);
}

}  // namespace gxp
