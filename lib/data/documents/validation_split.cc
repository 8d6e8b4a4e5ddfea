#include "lib/data/documents/validation_split.h"

#include <cmath>

#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace gxp {
namespace {

// The first document of a group. Groups are what lies between multiples of 1 / fraction.
uint64_t first_of(uint64_t group, double fraction) {
  return uint64_t(std::ceil(double(group) / fraction));
}

}  // namespace

bool is_for_validation(uint64_t number, double fraction) {
  GXP_ASSERT(fraction >= 0 && fraction < 1);
  if (fraction == 0) return false;
  auto group = uint64_t(double(number) * fraction);
  // Products are rounded: the group is the one that the borders say.
  while (first_of(group, fraction) > number) --group;
  while (first_of(group + 1, fraction) <= number) ++group;
  const uint64_t first = first_of(group, fraction);
  return number == first + mix64(group + 1) % (first_of(group + 1, fraction) - first);
}

}  // namespace gxp
