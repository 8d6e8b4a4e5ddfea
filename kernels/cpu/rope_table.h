// Cosines and sines of the angles by which rotary positions turn: kernels/ops.h has the formula.
#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "kernels/cpu/rows.h"
#include "lib/base/decoder/rotary.h"

namespace gxp {

// Of one Rotary.
class RopeTable {
 public:
  explicit RopeTable(const Rotary& rotary) : rotary_(rotary) {}

  [[nodiscard]] const Rotary& rotary() const { return rotary_; }
  // The table has at least so many positions afterwards.
  void prepare(size_t positions);
  // Forward; the caller turns `direction`.
  [[nodiscard]] Rotation at(size_t position) const {
    const size_t pairs = rotary_.frequencies.size();
    return {&cosines_[position * pairs], &sines_[position * pairs], pairs, 1.0f};
  }

 private:
  Rotary rotary_;
  std::vector<float> cosines_;  // (positions, pairs)
  std::vector<float> sines_;
};

// A table for each Rotary that was asked for, a few in a model. One thread at a time.
class RopeTables {
 public:
  // With at least so many positions; no work if it has them already, so a step after the first
  // costs nothing.
  const RopeTable& table(const Rotary& rotary, size_t positions);

 private:
  std::list<RopeTable> tables_;  // whose elements stay where they are
};

}  // namespace gxp
