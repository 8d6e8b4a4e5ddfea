#include "lib/topo/model/path_type.h"

#include <algorithm>
#include <array>

namespace gxp {
namespace {

constexpr std::array<std::string_view, 12> kNames = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

}  // namespace

std::string_view to_string(PathType type) { return kNames[size_t(type)]; }

std::optional<PathType> parse_path_type(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return PathType(found - kNames.begin());
}

}  // namespace gxp
