// What kernels/ops.h does with tokens and positions, on a GPU: embeddings, the classifier,
// rotations. A token or a target beyond the vocabulary is found by CudaQueue::read().
#pragma once

#include "kernels/cuda/cuda_queue.h"

namespace gxp {

class CudaTokens {
 public:
  explicit CudaTokens(CudaQueue& queue) : queue_(queue) {}

  void embedding_forward(const Tensor& out, const ConstTensor& tokens,
                         const ConstTensor& token_table, const ConstTensor& position_table);
  void embedding_backward(const Tensor& dtoken_table, const Tensor& dposition_table,
                          const ConstTensor& dout, const ConstTensor& tokens);
  void classifier(const Tensor& logits, const Tensor& losses, const ConstTensor& targets,
                  float scale);
  void classifier_loss(const Tensor& losses, const ConstTensor& logits, const ConstTensor& targets);
  // `direction`: 1, or -1 for the gradient.
  void rotate(const Tensor& x, int head_size, double theta, float direction);

 private:
  struct Angles {
    size_t positions, pairs;
    double theta;
  };
  void prepare_angles(const Angles& wanted);

  CudaQueue& queue_;
  Buffer angles_;  // (2, positions, pairs): cosines and sines
  Angles angles_of_{};
};

}  // namespace gxp
