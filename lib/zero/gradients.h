// What the ranks do with their gradients: sum them, and measure them. Each rank has scaled its loss
// by 1 / (tokens of the step on all ranks), so the sum is the gradient of the mean loss.
#pragma once

#include <span>

#include "kernels/ops.h"
#include "lib/collective/communicator.h"
#include "lib/shard/layout.h"

namespace gxp {

// Sums the bucket's part of the flat gradients (f32) over all ranks, in place.
void reduce_bucket(Communicator& communicator, Memory gradients, const Bucket& bucket);

// Sums a unit's gradients (f32, in one equal part a rank of the communicator); this rank's part of
// the sum is in its place afterwards, the others hold anything. The sums have the bits of
// reduce_bucket's.
void scatter_sum(Communicator& communicator, Memory unit);

// The sum of squares of the parts of one shard: in f64, per part over a fixed tree, in order. Its
// bits depend on the gradients and the parts alone. `shards`: as in part_of().
double sum_of_squares(Ops& ops, const ParameterLayout& layout, std::span<const TensorPart> parts,
                      const Tensor& gradients, int shards);

// The first part whose gradient is not finite; null if all are.
const TensorPart* find_non_finite(Ops& ops, const ParameterLayout& layout,
                                  std::span<const TensorPart> parts, const Tensor& gradients,
                                  int shards);

}  // namespace gxp
