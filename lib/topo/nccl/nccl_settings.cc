// NCCL's variables as settings of its routes.

#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>

#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"
#include "lib/topo/nccl/nccl_routes.h"

namespace gxp {
namespace {

bool switch_in(std::string_view name, std::string_view value) {
  if (value != "0" && value != "1")
    fail(ErrorKind::kUsage, "set {}={}: must be 0 or 1", name, value);
  return value == "1";
}

PathType level_in(std::string_view name, std::string_view value) {
  const auto level = parse_nccl_level(value);
  if (!level)
    fail(ErrorKind::kUsage, "set {}={}: must be LOC, NVL, PIX, PXB, PHB, SYS, or 0 to 5", name,
         value);
  return *level;
}

using Level = std::optional<PathType> NcclSettings::*;

struct Variable {
  std::string_view name;
  std::variant<Level, bool NcclSettings::*, std::optional<bool> NcclSettings::*> member;
};

constexpr std::array kVariables = {
    Variable{"NCCL_P2P_LEVEL", &NcclSettings::p2p_level},
    Variable{"NCCL_P2P_DISABLE", &NcclSettings::p2p_disable},
    Variable{"NCCL_NET_GDR_LEVEL", &NcclSettings::gdr_level},
    Variable{"NCCL_NET_GDR_READ", &NcclSettings::gdr_read},
    Variable{"NCCL_NET_GDR_C2C", &NcclSettings::gdr_c2c},
    Variable{"NCCL_PXN_DISABLE", &NcclSettings::pxn_disable},
    Variable{"NCCL_PXN_C2C", &NcclSettings::pxn_c2c},
};

}  // namespace

std::optional<PathType> parse_nccl_level(std::string_view text) {
  constexpr std::array kOldLevels = {PathType::kLoc, PathType::kPix, PathType::kPxb,
                                     PathType::kPhb, PathType::kSys, PathType::kSys};
  const auto named = parse_path_type(text);
  if (named && *named <= PathType::kSys) return named;
  if (text.size() != 1 || text[0] < '0' || text[0] > '9') return std::nullopt;
  return kOldLevels[std::min<size_t>(size_t(text[0] - '0'), kOldLevels.size() - 1)];
}

void set_nccl_variable(NcclSettings& settings, std::string_view name, std::string_view value) {
  const auto* const variable = std::ranges::find(kVariables, name, &Variable::name);
  if (variable == kVariables.end())
    fail(ErrorKind::kUsage, "set {}: only these NCCL variables affect paths: {}", name,
         joined(row_names(kVariables), ", "));
  std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), Level>) {
          settings.*member = level_in(name, value);
        } else {
          settings.*member = switch_in(name, value);
        }
      },
      variable->member);
}

}  // namespace gxp
