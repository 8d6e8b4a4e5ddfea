// select_algorithm() (selection.h) for ranks that may share memory: they take the methods of shared
// memory, unless messages were measured to be faster, the cost of agreeing on messages included.
#pragma once

#include <optional>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/tune/selection.h"
#include "lib/collective/tune/shared_methods.h"

namespace gxp {

// The plan and its reason name the method. Cost: that of select_algorithm(), twice where messages
// lose.
AlgorithmPlan select_with_sharing(const Call& call, const SelectionSettings& settings,
                                  const CostModel& model, const MethodLimits& limits,
                                  MemoryOrigin origin);

// The value of MethodLimits::wanted for the algorithm in the settings.
std::optional<SharedMethod> wanted_method(const SelectionSettings& settings);

}  // namespace gxp
