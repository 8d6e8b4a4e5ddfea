// One element of an RMS norm's gradient: Zhang & Sennrich, arXiv:1910.07467.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// The gradient of x, where g = dout * weight, normalised = x * rstd, and `mean_g_norm` is the row's
// mean of g * normalised.
template <class F>
GXP_HOST_DEVICE F rmsnorm_gradient(F g, F normalised, F mean_g_norm, F rstd) {
  return rstd * (g - normalised * mean_g_norm);
}

}  // namespace gxp
