// Clipping of gradients by their global norm: Pascanu, Mikolov & Bengio, arXiv:1211.5063.
#pragma once

namespace gxp {

// The factor of all gradients that makes their norm at most `clip`; 1 if it is already, or if
// `clip` is 0. The 1e-6 is PyTorch's (clip_grad_norm_). A norm that is not a number stays
// visible: the coefficient is not a number either.
double clip_coefficient(double norm, double clip);

}  // namespace gxp
