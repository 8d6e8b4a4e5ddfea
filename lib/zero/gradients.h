// What the ranks do with their gradients: sum them, and measure them. Each rank has scaled its loss
// by 1 / (tokens of the step on all ranks), so the sum is the gradient of the mean loss.
#pragma once

#include <span>

#include "kernels/ops.h"
#include "lib/shard/layout.h"
#include "lib/zero/device_calls.h"

namespace gxp {

// Sums gradients over the ranks of the communicator, in place and in their type: f32, bf16 or f16,
// where each sum of two is rounded.
void all_sum(DeviceCalls& calls, Communicator& communicator, const Tensor& gradients);

// Likewise those of a wrap, in one equal part a rank; this rank's part of the sum is in its place
// afterwards, the others hold anything. The sums have the bits of all_sum's.
void scatter_sum(DeviceCalls& calls, Communicator& communicator, const Tensor& wrap);

// total (one f64) = the sum of squares of the parts of one shard: in f64, per part over a fixed
// tree, in order. Its bits depend on the gradients and the parts alone. Gradients of any of the
// three types. `shards`: as in gradients_of().
void sum_squares(Ops& ops, const Tensor& total, const ParameterLayout& layout,
                 std::span<const TensorPart> parts, const Tensor& gradients, int shards);

// The first part whose gradient is not finite; null if all are.
const TensorPart* find_non_finite(Ops& ops, const ParameterLayout& layout,
                                  std::span<const TensorPart> parts, const Tensor& gradients,
                                  int shards);

}  // namespace gxp
