// The optimizers that change each weight by what is kept of that weight alone.
#pragma once

#include "lib/optim/optimizer.h"

namespace gxp {

// AdamW (Loshchilov & Hutter, arXiv:1711.05101).
std::unique_ptr<Optimizer> make_adamw(const ComputeLane& lane, const OptimConfig& config);
// Adam (Kingma & Ba, arXiv:1412.6980) with the weight decay in the gradient, as PyTorch's.
std::unique_ptr<Optimizer> make_adam(const ComputeLane& lane, const OptimConfig& config);
// Stochastic gradient descent; with momentum as PyTorch's SGD has it, where lr is not a part of the
// momentum and the first gradient is taken in undamped.
std::unique_ptr<Optimizer> make_sgd(const ComputeLane& lane, const OptimConfig& config);
// Lion (Chen et al., arXiv:2302.06675).
std::unique_ptr<Optimizer> make_lion(const ComputeLane& lane, const OptimConfig& config);

}  // namespace gxp
