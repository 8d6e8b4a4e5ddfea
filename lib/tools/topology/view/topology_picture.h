// The picture of a topology: one host; or the switches of a cluster over its hosts, equal ones
// drawn once, and below them the inside of the hosts.
//
// A host: NUMA nodes as boxes side by side, PCIe switches as boxes within them, the devices of a
// switch in columns below its head, GPUs at the bottom of all, and under them what joins GPUs
// directly. A line's width is the square root of its bandwidth.
//   Cost  linear in the parts, but for bundles: they are laid into rows one by one.
#pragma once

#include "lib/tools/topology/view/diagram.h"
#include "lib/tools/topology/view/picture.h"

namespace gxp {

struct Topology;

Picture draw_topology(const Topology& topology);
Picture draw_host(const Diagram& diagram);

}  // namespace gxp
