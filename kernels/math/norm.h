// One element of a layer norm, Ba, Kiros & Hinton, arXiv:1607.06450, or of an RMS norm, Zhang &
// Sennrich, arXiv:1910.07467, which is the layer norm whose means are 0.
#pragma once

#include "kernels/math/host_device.h"

namespace gxp {

// `variance` is the mean of (x - mean)^2.
GXP_HOST_DEVICE float rstd_of(float variance, float eps) {
  return 1.0f / square_root(variance + eps);
}

template <class F>
GXP_HOST_DEVICE F normalise(F x, F mean, F rstd) {
  return (x - mean) * rstd;
}

// The gradient of x, where g = dout * weight, and `mean_g`, `mean_g_norm` are the row's means of g
// and of g * normalised x.
template <class F>
GXP_HOST_DEVICE F norm_gradient(F g, F normalised, F mean_g, F mean_g_norm, F rstd) {
  return rstd * (g - mean_g - normalised * mean_g_norm);
}

}  // namespace gxp
