// How f32 master weights become the parameters of a half type that the model reads.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "lib/arch/architecture.h"
#include "lib/config/run_config.h"

namespace gxp {

// Threads: as the Ops, which outlives it.
class WeightRounding {
 public:
  WeightRounding(Ops& ops, const TrainConfig& train);
  // to = from: elements of `tensor` from `first` on, for step `step` (from 1). Their bits depend on
  // these and on the settings alone, however a tensor is cut. Frozen ones are rounded to nearest.
  void round(const Tensor& to, const ConstTensor& from, const TensorSpec& tensor, size_t first,
             int64_t step) const;

 private:
  Ops& ops_;
  const bool stochastic_;
  const uint64_t seed_;
};

}  // namespace gxp
