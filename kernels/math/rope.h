// The angle by which a pair of channels turns at a position: Su et al., arXiv:2104.09864.
#pragma once

#include <cmath>
#include <cstddef>

namespace gxp {

// position * theta^(-2 pair / head_size), in double, on the host.
inline double rope_angle(size_t position, size_t pair, size_t head_size, double theta) {
  const double exponent = -2.0 * double(pair) / double(head_size);
  return double(position) * std::pow(theta, exponent);
}

}  // namespace gxp
