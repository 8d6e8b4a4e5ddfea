#include "kernels/cpu/rope_table.h"

#include <cmath>

#include "kernels/math/rope.h"

namespace gxp {

void RopeTable::prepare(size_t positions, size_t head_size, double theta) {
  if (pairs_ != head_size / 2 || theta_ != theta) {
    pairs_ = head_size / 2;
    theta_ = theta;
    cosines_.clear();
    sines_.clear();
  }
  for (size_t i = cosines_.size(); i < positions * pairs_; ++i) {
    const double angle = rope_angle(i / pairs_, i % pairs_, head_size, theta);
    cosines_.push_back(float(std::cos(angle)));
    sines_.push_back(float(std::sin(angle)));
  }
}

}  // namespace gxp
