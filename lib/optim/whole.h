// The optimizers that must see whole tensors.
#pragma once

#include "lib/optim/optimizer.h"

namespace gxp {

// Muon (Jordan et al., 2024, kellerjordan.github.io/posts/muon) for the matrices of the blocks:
// momentum as torch.optim.Muon has it, orthogonalised in f32; AdamW for the other tensors, at
// adamw_lr_ratio * lr. With adjust_lr = match_rms_adamw, the scale of Liu et al., arXiv:2502.16982.
std::unique_ptr<Optimizer> make_muon(const ComputeLane& lane, const OptimConfig& config);

// Adafactor (Shazeer & Stern, arXiv:1804.04235) with the learning rate from outside and neither
// momentum nor scaling by the parameter, as Hugging Face's with scale_parameter=False,
// relative_step=False. A vector is a matrix of one row, whose column means are its second moments.
std::unique_ptr<Optimizer> make_adafactor(const ComputeLane& lane, const OptimConfig& config);

// x(R, C) becomes nearly the orthogonal matrix next to it: `steps` Newton-Schulz iterations of
// degree 5 with Jordan's coefficients, which bring singular values to about [0.65, 1.2].
// `workspace`: orthogonalise_workspace(R, C) floats. Cost: 2 m (2 R C + m^2) multiply-adds a step,
// m = min(R, C).
void orthogonalise(Ops& ops, const Tensor& x, Memory workspace, int steps);

}  // namespace gxp
