// Cosines and sines of the angles by which rotary positions turn: kernels/ops.h has the formula.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cpu/rows.h"

namespace gxp {

// Computed in double, rounded once. One thread at a time may call prepare().
class RopeTable {
 public:
  // The table has at least so many positions afterwards; no work if it has them already, so a step
  // after the first costs nothing.
  void prepare(size_t positions, size_t head_size, double theta);
  // Forward; the caller turns `direction`.
  [[nodiscard]] Rotation at(size_t position) const {
    return {&cosines_[position * pairs_], &sines_[position * pairs_], pairs_, 1.0f};
  }

 private:
  size_t pairs_ = 0;
  double theta_ = 0;
  std::vector<float> cosines_;  // (positions, pairs)
  std::vector<float> sines_;
};

}  // namespace gxp
