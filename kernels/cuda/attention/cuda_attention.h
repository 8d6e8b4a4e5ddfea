// Causal attention of kernels/ops.h on a GPU.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>

#include "kernels/attention_ops.h"
#include "kernels/cuda/cuda_queue.h"
#include "kernels/cuda/cudnn/cudnn_attention.h"

namespace gxp {

enum class AttentionBy {
  kOwn,    // gxp's kernels
  kCudnn,  // cuDNN, or it fails
  kAuto,   // cuDNN where it can be loaded and takes the call, else gxp's, which the log says
};

// gxp's own kernels take every shape, every AttentionScores and rows of several documents; cuDNN what
// cudnn_takes() says.
class CudaAttention : public AttentionOps {
 public:
  // `slicing` is cuDNN's. kUnavailable: `by` is kCudnn, which cannot be loaded.
  CudaAttention(CudaQueue& queue, AttentionBy by, const CudnnSlicing& slicing);
  // "attention by cuDNN 9.19.0", or the reason why it is not used; "" if it was not requested.
  [[nodiscard]] const std::string& attention_description() const { return description_; }

 private:
  void attend(const AttentionForward& args) override;
  void attend(const AttentionCached& args) override;
  void attend(const AttentionBackward& args) override;
  void raise_largest(const Tensor& written) override;

  template <class Args, class Compute>
  bool is_computed_by_cudnn(const Args& args, std::initializer_list<const void*> arrays,
                            Compute compute);

  CudaQueue& queue_;
  AttentionBy by_;
  std::string description_;
  std::optional<CudnnAttention> cudnn_;
  std::set<std::string> refusals_;  // that were logged
};

}  // namespace gxp
