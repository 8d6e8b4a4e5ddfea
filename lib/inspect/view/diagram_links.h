// The links beside a host's tree, as a diagram shows them.
#pragma once

#include <vector>

#include "lib/inspect/view/diagram.h"

namespace gxp {

// Adds bundles, link switches, and lines on the GPUs for links that are neither. `box_of` is by
// part.
void add_gpu_links(const HostTree& host, const std::vector<BoxId>& box_of, Diagram& diagram);

}  // namespace gxp
