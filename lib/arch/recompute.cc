#include "lib/arch/recompute.h"

#include "lib/base/error.h"

namespace gxp {

bool keeps(Recompute recompute, const ActivationSpec& saved) {
  return recompute == Recompute::kNone || (recompute == Recompute::kSelective && saved.costly);
}

std::vector<Recompute> recompute_by_unit(const Architecture& architecture, Recompute recompute,
                                         const std::vector<std::string>& patterns) {
  std::vector<Recompute> by_unit(architecture.units.size(), Recompute::kNone);
  for (const std::string& pattern : patterns) {
    bool matches = false;
    for (const int unit : units_matching(architecture, pattern)) {
      if (architecture.units[size_t(unit)].saved.empty()) continue;
      by_unit[size_t(unit)] = recompute;
      matches = true;
    }
    if (!matches)
      fail(ErrorKind::kConfig,
           "train.recompute_units '{}': matches none of the units {} to {}; gxp shard-plan --units "
           "lists them",
           pattern, architecture.units[1].name, architecture.units[by_unit.size() - 2].name);
  }
  return by_unit;
}

}  // namespace gxp
