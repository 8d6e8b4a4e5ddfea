// What a run may have more of until its memory is full. Pure.
#pragma once

#include <span>
#include <string_view>

#include "lib/config/run_config.h"
#include "lib/estimate/find_largest.h"

namespace gxp {

// batch, seq and layers.
std::span<const Quantity<RunConfig>> run_quantities();

// kUsage with a near match if there is none of that name.
const Quantity<RunConfig>& find_run_quantity(std::string_view name);

}  // namespace gxp
