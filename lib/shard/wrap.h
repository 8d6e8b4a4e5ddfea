// FSDP wrap policies: which neighbouring units form an FSDP unit, whose parameters are gathered and
// freed and whose gradients are reduced together, and which is cut into shards as one. FSDP's
// auto-wrap policies. Pure.
//
// Larger FSDP units make fewer, longer messages and hold more at a time. The norm of the gradients
// is a sum over shards, so its last bits follow the FSDP units; one policy has one norm for all
// strategies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/config/parallel_config.h"

namespace gxp {

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
