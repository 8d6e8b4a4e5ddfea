#include "kernels/cpu/rope_table.h"

#include <algorithm>

#include "kernels/math/rope.h"

namespace gxp {

void RopeTable::prepare(size_t positions) {
  const size_t pairs = rotary_.frequencies.size();
  for (size_t i = cosines_.size(); i < positions * pairs; ++i) {
    const RopeFactors factors = rope_factors(rotary_, i / pairs, i % pairs);
    cosines_.push_back(factors.cosine);
    sines_.push_back(factors.sine);
  }
}

const RopeTable& RopeTables::table(const Rotary& rotary, size_t positions) {
  auto found = std::ranges::find(tables_, rotary, &RopeTable::rotary);
  if (found == tables_.end()) found = tables_.emplace(found, rotary);
  found->prepare(positions);
  return *found;
}

}  // namespace gxp
