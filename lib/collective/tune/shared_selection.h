// select_algorithm() (selection.h) for ranks that may share memory: they take the ways of shared
// memory, unless messages were measured to be faster, the cost of agreeing on messages included.
#pragma once

#include <optional>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/tune/selection.h"
#include "lib/collective/tune/shared_ways.h"

namespace gxp {

// The plan and its reason name the way. Cost: that of select_algorithm(), twice where messages
// lose.
AlgorithmPlan select_with_sharing(const Call& call, const SelectionSettings& settings,
                                  const CostModel& model, const WayLimits& limits,
                                  MemoryOrigin origin);

// The value of WayLimits::wanted for the algorithm in the settings.
std::optional<SharedWay> wanted_way(const SelectionSettings& settings);

}  // namespace gxp
