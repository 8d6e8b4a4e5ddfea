// A GPU's reductions, passed on; tests override what they look at.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_folds.h"

namespace gxp {

class ForwardedFolds : public DeviceFolds {
 public:
  explicit ForwardedFolds(std::unique_ptr<DeviceFolds> folds = make_cuda_folds())
      : folds_(std::move(folds)) {}
  void fold_all(Stream& stream, std::span<std::byte* const> targets,
                std::span<const std::byte* const> sources, size_t bytes, DType dtype, ReduceOp op,
                const FoldOptions& options) override {
    folds_->fold_all(stream, targets, sources, bytes, dtype, op, options);
  }
  void barrier(Stream& stream, const DeviceBarrier& barrier) override {
    folds_->barrier(stream, barrier);
  }

 private:
  std::unique_ptr<DeviceFolds> folds_;
};

}  // namespace gxp
