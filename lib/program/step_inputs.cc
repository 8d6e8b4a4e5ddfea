#include "lib/program/step_inputs.h"

namespace gxp {

size_t StepInputs::count_of_members(int wrap, RankGroup group) const {
  const size_t count = this->wrap(wrap).flat.count;
  return group == RankGroup::kShards ? count : count / size_t(groups.shard_size);
}

std::string StepInputs::name_of(int wrap) const {
  const Wrap& place = this->wrap(wrap);
  const std::string& first = unit(place.first_unit).name;
  if (place.first_unit == place.last_unit) return first;
  return first + " to " + unit(place.last_unit).name;
}

}  // namespace gxp
