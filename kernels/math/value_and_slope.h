// What the backward pass of an activation function needs of it.
#pragma once

namespace gxp {

template <class F>
struct ValueAndSlope {
  F value;
  F slope;  // the derivative
};

}  // namespace gxp
