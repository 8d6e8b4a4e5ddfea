// The columns of an array that Ops::rotate() may change.
#pragma once

#include "kernels/ops.h"
#include "lib/base/error.h"

namespace gxp {

// How many there are from heads.first on, up to the last channel that turns. Asserts what rotate()
// says of its arguments.
inline size_t turned_columns(const Shape& x, const HeadColumns& heads, const Rotary& rotary) {
  const size_t channels = 2 * rotary.frequencies.size();
  GXP_ASSERT(x.rank() == 3 && heads.count > 0);
  GXP_ASSERT(channels > 0 && channels <= heads.size && heads.size <= heads.stride);
  const size_t before_last = (heads.count - 1) * heads.stride;
  GXP_ASSERT(heads.first + before_last + heads.size <= x.columns());
  return before_last + channels;
}

}  // namespace gxp
