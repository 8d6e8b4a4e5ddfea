// Gradients between backward and the optimizer: added over a rank's micro-batches, summed over the
// ranks, and measured. Each rank has scaled its loss by 1 / (tokens of the step on all ranks), so
// the sum is the gradient of the mean loss. Gradients are f32, bf16 or f16. Which buffers an
// operation adds or sends is decided in lib/program/gradient_writer.h.
#pragma once

#include <functional>
#include <span>

#include "kernels/ops.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// Returns the function that carries out an operation of the part kGradients. `ops`: of its lane.
std::function<void()> bind_gradients(ShardedMemory& sharded, Ops& ops, const Op& op);

// total (one f64) = the sum of squares of the gradients of `parts`: in f64, over a fixed tree for
// the adjacent parts of a unit, then in the order of the parts. Its bits depend only on the
// gradients and the parts, not on the memory layout, which differs between strategies.
void sum_squares(Ops& ops, const Tensor& total, std::span<const TensorPart> parts,
                 const FlatShards& gradients);

// The first part whose gradient is not finite; null if all are finite.
const TensorPart* find_non_finite(Ops& ops, std::span<const TensorPart> parts,
                                  const FlatShards& gradients);

}  // namespace gxp
