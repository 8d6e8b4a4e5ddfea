// FSDP wrap policies: which neighbouring units form an FSDP unit, whose parameters are gathered and
// freed and whose gradients are reduced together, and which is cut into shards as one. FSDP's
// auto-wrap policies. Pure.
//
// Larger FSDP units make fewer, longer messages and hold more at a time. The norm of the gradients
// is a sum over shards, so its last bits follow the FSDP units; one policy has one norm for all
// strategies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/architecture.h"

namespace gxp {

enum class WrapPolicy {
  kBlock,  // each unit
  kSize,   // as many units as it takes to have so many parameters
  kNone,   // the model
  kMatch,  // a wrap begins at each named unit
};

// In the order of the enumerators.
inline constexpr std::array<std::string_view, 4> kWrapPolicyNames = {"block", "size", "none",
                                                                     "match"};

struct WrapSettings {
  WrapPolicy policy = WrapPolicy::kBlock;
  uint64_t min_params = 100'000'000;    // of kSize; the last FSDP unit may have fewer
  std::vector<std::string> units = {};  // of kMatch: patterns with *, ? and [...]
};

// The first unit of each FSDP unit, ascending from 0. Throws kConfig for a pattern that matches no
// unit, and for kMatch without one.
std::vector<int> first_units_of_wraps(const Architecture& architecture,
                                      const WrapSettings& settings);

}  // namespace gxp
