// What the ranks do with their gradients: sum them in buckets, and measure them.
#pragma once

#include <string>

#include "kernels/ops.h"
#include "lib/arch/architecture.h"
#include "lib/collective/communicator.h"
#include "lib/shard/layout.h"

namespace gxp {

// Sums the bucket's part of the flat gradients (f32) over all ranks, in place. Each rank has scaled
// its loss by 1 / (tokens of the step on all ranks), so the sum is the gradient of the mean loss.
void reduce_bucket(Communicator& communicator, Memory gradients, const Bucket& bucket);

// The global norm: per tensor a sum of squares in f64 with a fixed order, added in the order of the
// layout. Its bits depend on the gradients alone, not on buckets, threads or ranks.
double gradient_norm(Ops& ops, const Architecture& architecture, const ParameterLayout& layout,
                     Memory gradients);

// The name of the first tensor, in forward order, whose gradient is not finite; "" if all are.
std::string first_non_finite(Ops& ops, const Architecture& architecture,
                             const ParameterLayout& layout, Memory gradients);

}  // namespace gxp
