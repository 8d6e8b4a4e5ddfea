// Online softmax, Milakov & Gimelshein, arXiv:1805.02867, and its gradient.
#pragma once

#include "kernels/math/exp.h"

namespace gxp {

// A part of a row: its maximum, and the sum of e^(x - maximum) over the part.
template <class F>
struct SoftmaxPart {
  F maximum, sum;
};

// The factor that turns e^(x - old) into e^(x - now), now >= old. An empty part has `old` =
// -infinity and gets 0; `now` must be finite.
template <class F>
GXP_HOST_DEVICE F rescale(F old, F now) {
  return exp_of_nonpositive(old - now);
}

template <class F>
GXP_HOST_DEVICE SoftmaxPart<F> merge(SoftmaxPart<F> a, SoftmaxPart<F> b) {
  const F maximum = a.maximum > b.maximum ? a.maximum : b.maximum;
  return {maximum, a.sum * rescale(a.maximum, maximum) + b.sum * rescale(b.maximum, maximum)};
}

// The gradient of a score, where p is its probability, dp that one's gradient, and `delta` the row's
// sum of p * dp.
template <class F>
GXP_HOST_DEVICE F softmax_gradient(F p, F dp, F delta) {
  return p * (dp - delta);
}

}  // namespace gxp
