// A topology as a report, for programs.
#pragma once

#include "lib/report/report.h"
#include "lib/topo/read/topology.h"

namespace gxp {

// devices[] of {id, kind, name, ...}, whose ids are names_of_parts(); a NUMA node's caches are
// lists side by side: level, bytes of each, count. links[] beside the trees; paths[] between GPUs,
// ports and NUMA nodes as NCCL finds them, {from, to, type, bandwidth_gb_s, limiting_hop}; hosts[],
// switches[] of a cluster; channels[] of a file of rings and trees; absent[], notes[]. `tree`
// numbers the kinds of hosts where there are several.
Report topology_report(const Topology& topology);

}  // namespace gxp
