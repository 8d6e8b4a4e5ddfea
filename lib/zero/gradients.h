// What a rank computes of the gradients that it holds, once they are summed over the ranks.
// Each rank has scaled its loss by 1 / (tokens of the step on all ranks), so the sum is the
// gradient of the mean loss. Gradients are f32, bf16 or f16.
#pragma once

#include <span>

#include "kernels/ops.h"
#include "lib/zero/flat_tensors.h"

namespace gxp {

// total (one f64) = the sum of squares of the gradients of `parts`: in f64, for each part over a
// fixed tree, then in the order of the parts. Its bits depend on the gradients and the parts alone.
void sum_squares(Ops& ops, const Tensor& total, std::span<const TensorPart> parts,
                 const FlatShards& gradients);

// The first part whose gradient is not finite; null if all are finite.
const TensorPart* find_non_finite(Ops& ops, std::span<const TensorPart> parts,
                                  const FlatShards& gradients);

}  // namespace gxp
