#include "lib/shard/wrap.h"

#include <numeric>
#include <set>

#include "lib/base/error.h"

namespace gxp {
namespace {

std::vector<int> wraps_by_size(const Architecture& architecture, uint64_t min_params) {
  std::vector<int> first_units = {0};
  uint64_t parameters = 0;
  for (size_t unit = 0; unit < architecture.units.size(); ++unit) {
    if (parameters >= min_params) {
      first_units.push_back(int(unit));
      parameters = 0;
    }
    parameters += architecture.units[unit].parameter_count();
  }
  return first_units;
}

std::vector<int> wraps_by_name(const Architecture& architecture,
                               const std::vector<std::string>& patterns) {
  if (patterns.empty())
    fail(ErrorKind::kConfig,
         "parallel.wrap match: parallel.wrap_units names no units; list patterns such as \"h.*\"");
  std::set<int> first_units = {0};
  for (const std::string& pattern : patterns) {
    const std::vector<int> matching = units_matching(architecture, pattern);
    first_units.insert(matching.begin(), matching.end());
    if (matching.empty())
      fail(ErrorKind::kConfig,
           "parallel.wrap_units '{}': matches none of the units {} to {}; gxp shard-plan --units "
           "lists them",
           pattern, architecture.units.front().name, architecture.units.back().name);
  }
  return {first_units.begin(), first_units.end()};
}

}  // namespace

std::vector<int> first_units_of_wraps(const Architecture& architecture,
                                      const WrapSettings& settings) {
  switch (settings.policy) {
    case WrapPolicy::kSize:
      return wraps_by_size(architecture, settings.min_params);
    case WrapPolicy::kNone:
      return {0};
    case WrapPolicy::kMatch:
      return wraps_by_name(architecture, settings.units);
    default: {
      std::vector<int> all(architecture.units.size());
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
  }
}

}  // namespace gxp
