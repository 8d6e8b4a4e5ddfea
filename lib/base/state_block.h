// Optimizer state of 8 bits: elements of a tensor that share a scale. The size is that of
// bitsandbytes; the paper, Dettmers et al., arXiv:2110.02861, has blocks of 2048.
#pragma once

#include <cstddef>

namespace gxp {

inline constexpr size_t kStateBlock = 256;

}  // namespace gxp
