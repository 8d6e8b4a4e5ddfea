// choose() for ranks that may share memory (selection.h): they take the ways of shared memory, unless
// messages were measured to be faster, with what it costs to find out that they are wanted.
#pragma once

#include <optional>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/tune/selection.h"
#include "lib/collective/tune/shared_ways.h"

namespace gxp {

// It tells the way, and so does its reason. Cost: as choose(); twice, where
// messages lose.
AlgorithmPlan select_with_sharing(const Call& call, const SelectionSettings& settings,
                                  const CostModel& model, const WayLimits& limits,
                                  MemoryOrigin origin);

// What `wanted` of the limits is by the settings' algorithm.
std::optional<SharedWay> wanted_way(const SelectionSettings& settings);

}  // namespace gxp
