// Muon's step for a whole matrix.
#pragma once

#include "kernels/ops.h"

namespace gxp {

// x(R, C) becomes nearly the orthogonal matrix next to it: `steps` Newton-Schulz iterations of
// degree 5 with Jordan's coefficients, which bring singular values to about [0.65, 1.2].
// `workspace`: of muon in lib/arch/optimizers.cc. Cost: 2 m (2 R C + m^2) multiply-adds a step,
// m = min(R, C).
void orthogonalise(Ops& ops, const Tensor& x, Memory workspace, int steps);

}  // namespace gxp
